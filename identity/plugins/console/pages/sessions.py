"""Sessions of a user: where the person is signed in, and the end of one or of all."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from identity.domain.sessions import Session
from identity.domain.words import say, say_many
from identity.http import targets
from identity.pages.devices import device
from identity.plugins.console.confirm_page import ConfirmPage
from identity.plugins.console.console_page import pick
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.places import Place
from identity.plugins.console.things import OfUser
from identity.storage.paging import Page, PageRequest


class SessionList(OfUser, ListPage):
    """All that are live, last seen first."""

    below = "/sessions"

    columns = (say("Device"), say("Place"), say("Signed in"), say("Last seen"))
    actions = True
    searchable = False
    title = say("Sessions")
    lead = say("Where the person is signed in.")
    empty_title = say("No sessions")
    empty_text = section_empty = say("The person is not signed in anywhere.")
    reading, made_there = "session.read", True
    id, all_of_them = "sessions", say("All sessions …")

    def fetch(self, asked: PageRequest) -> Page[Session]:
        """All at once: they are few."""
        return Page(self.services.users.sessions(self.thing.id))

    def cells(self, one: Session) -> Cells:
        where, may_end = device(one.user_agent, self.words), self.may("session.delete")
        what = Markup("{} {}").format(where, one.client_address)
        return (
            self.ui.bold(where),
            one.client_address or self.faint(say("Unknown")),
            self.ui.when(one.started_at, clock=True),
            self.ui.ago(one.last_seen_at),
            self.buttons(f"{self.list_href}/{one.id}", what, remove=say("End …"), change=False) if may_end else "",
        )

    def filters(self) -> Mapping[str, object]:
        return {"beside": self.new()}

    def new(self, kind: str = "") -> Markup:
        live = self.services.users.sessions(self.thing.id)
        if not live or not self.may("session.delete"):
            return Markup()
        return self.link(say("End all sessions …"), f"{self.list_href}/delete")


class _End(OfUser, ConfirmPage):
    below = "#sessions"
    danger = False
    keep = say("Stay signed in")


class EndSession(_End):
    """Asks before the person is signed out of one."""

    title = say("Sign {name} out of {device}?")
    effects = (say("Applications that were opened in this session lose access at once, unless they stay connected."),)
    label = say("End session")

    @property
    def session(self) -> Session:
        """Which one. Raises NotFound."""
        session: Session = pick(self, self.services.users.sessions(self.thing.id), "session")
        return session

    @property
    def names(self) -> Mapping[str, object]:
        return {"name": self.name, "device": device(self.session.user_agent, self.words)}

    def act(self) -> None:
        self.services.users.end_session(self.thing.id, self.session.id, by=self.principal)


class EndSessions(_End):
    """Asks before the person is signed out everywhere."""

    title = say("Sign {name} out everywhere?")
    label = say("End all sessions")

    @property
    def effects(self) -> Sequence[str]:
        count = len(self.services.users.sessions(self.thing.id))
        return [
            say_many("{n} session ends at once.", "{n} sessions end at once.", count),
            say("The password stays as it is."),
        ]

    def act(self) -> None:
        self.services.users.end_sessions(self.thing.id, by=self.principal)


_ALL = "/users/{user}/sessions"

PLACES = (
    Place(_ALL, SessionList, "session.read", targets.user),
    Place(f"{_ALL}/delete", EndSessions, "session.delete", targets.user),
    Place(f"{_ALL}/{{session}}/delete", EndSession, "session.delete", targets.user),
)
