"""Sessions of a user: where the person is signed in, and the end of one or of all."""

from collections.abc import Mapping, Sequence

from identity.domain.sessions import Session
from identity.domain.words import say
from identity.http import targets
from identity.pages.devices import device
from identity.plugins.console.confirm_page import ConfirmPage
from identity.plugins.console.console_page import found_or_missing, matched
from identity.plugins.console.list_page import ListPage
from identity.plugins.console.pages.users import ONE, OfUser, SessionRow, session_rows
from identity.plugins.console.places import Place
from identity.storage.paging import Page, PageRequest


class SessionList(OfUser, ListPage):
    """All that are live, last seen first."""

    template = "console/sessions.html"
    columns = (say("Device"), say("Place"), say("Signed in"), say("Last seen"))
    actions = True
    searchable = False
    heading = say("Sessions")
    lead = say("Where the person is signed in.")
    empty_title = say("No sessions")
    empty_text = say("The person is not signed in anywhere.")

    def fetch(self, asked: PageRequest) -> Page[Session]:
        """All at once: they are few."""
        return Page(self.services.users.sessions(self.user.id))

    def rows(self, found: Sequence[Session]) -> Sequence[SessionRow]:
        """In words."""
        return session_rows(self, found)

    def show(self) -> Mapping[str, object]:
        """With the address below which they lie."""
        return {**super().show(), "href": self.href}


class _End(OfUser, ConfirmPage):
    fields = ()
    danger = False

    def keep(self) -> str:
        return say("Stay signed in")

    def back(self) -> str:
        return f"{self.href}#sessions"


class EndSession(_End):
    """Asks before the person is signed out of one."""

    @property
    def session(self) -> Session:
        """Which one. Raises NotFound."""
        wanted = matched(self, "session")
        live = self.services.users.sessions(self.user.id)
        session: Session = found_or_missing(next((one for one in live if one.id == wanted), None), "session", wanted)
        return session

    def question(self) -> str:
        """With device and name."""
        where = device(self.session.user_agent, self.words)
        return say("Sign {name} out of {device}?", name=self.user.display_name, device=where)

    def effects(self) -> Sequence[str]:
        """What ends."""
        return [say("Applications that were opened in this session lose access at once, unless they stay connected.")]

    def label(self) -> str:
        """The button."""
        return say("End session")

    def act(self) -> str:
        """Do it."""
        self.services.users.end_session(self.user.id, self.session.id, by=self.principal)
        return f"{self.href}#sessions"


class EndSessions(_End):
    """Asks before the person is signed out everywhere."""

    def question(self) -> str:
        """With the name."""
        return say("Sign {name} out everywhere?", name=self.user.display_name)

    def effects(self) -> Sequence[str]:
        """How many end."""
        count = len(self.services.users.sessions(self.user.id))
        return [
            self.words.tn("{n} session ends at once.", "{n} sessions end at once.", count),
            say("The password stays as it is."),
        ]

    def label(self) -> str:
        """The button."""
        return say("End all sessions")

    def act(self) -> str:
        """Do it."""
        self.services.users.end_sessions(self.user.id, by=self.principal)
        return f"{self.href}#sessions"


_ALL = f"{ONE}/sessions"

PLACES = (
    Place(_ALL, SessionList, "session.read", targets.user),
    Place(f"{_ALL}/delete", EndSessions, "session.delete", targets.user),
    Place(f"{_ALL}/{{session}}/delete", EndSession, "session.delete", targets.user),
)
