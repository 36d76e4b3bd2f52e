"""SignedInPage: what account and console have in common: who is signed in, the menu of accounts, the language."""

from collections.abc import Mapping
from datetime import timedelta
from typing import ClassVar
from urllib.parse import urlencode

from pyramid.config import Configurator
from pyramid.response import Response

from identity.domain.errors import Conflict
from identity.domain.sessions import SignedIn
from identity.domain.users import HumanUser, Subject
from identity.http.endpoints import context_of
from identity.http.locale import UI_LOCALES
from identity.pages.drawing import HOME
from identity.pages.errors import LOGIN, TARGET
from identity.pages.frame import Frame, Group, Item, MenuEntry, OtherAccount, Person, Switcher
from identity.pages.notices import told_event, with_notice
from identity.pages.page import Page
from identity.provider.assurance import could_prove_more
from identity.provider.endpoints.end_session import ASK

#: Where the choice of another account is posted.
SWITCH = f"{HOME}/switch"


#: How long ago somebody may have proved who they are for what only they may do, and the parameter of /login for it.
FRESH_FOR, FRESH = timedelta(minutes=10), "fresh"


class SignedInPage(Page):
    """A page of the frame for the person who is signed in."""

    #: True for a page that is seen by whoever has proved in the last ten minutes who they are, as well as they can.
    needs_fresh: ClassVar[bool] = False

    #: Where the mark leads, and which entry of the account menu is the present one.
    home: ClassVar[str] = HOME
    #: What is said after a change, by its event; of several the first one here.
    told: ClassVar[Mapping[str, str]] = {}

    @property
    def account(self) -> SignedIn:
        """The session with which the page works."""
        account: SignedIn = self.request.account
        return account

    @property
    def subject(self) -> Subject:
        """Whose session it is."""
        return self.account.subject

    def before(self) -> Response | None:
        """To a sign-in that leads back here, if who they are has to be proved again."""
        if not self.needs_fresh or self.is_fresh():
            return None
        return self.redirect(self.sign_in_again)

    @property
    def sign_in_again(self) -> str:
        """Where who they are is proved again, as well as they can; it leads back here."""
        path = self.request.path_qs if self.request.method == "GET" else self.request.path
        return f"{LOGIN}?{urlencode({TARGET: path, FRESH: 'yes'})}"

    def is_fresh(self) -> bool:
        """True if the person has proved in the last ten minutes who they are, as well as they can."""
        session, context = self.account.session, context_of(self.request)
        young = session.proved_at is not None and context.now - session.proved_at < FRESH_FOR
        return young and not could_prove_more(self.subject, session.methods, context)

    def preferred_locales(self) -> str:
        """The person's own language, unless the address asks for another."""
        user = self.subject.user
        if UI_LOCALES in self.request.GET or not isinstance(user, HumanUser):
            return ""
        return user.profile.locale.replace("_", "-")

    def done(self, path: str) -> str:
        """The path, which is then to say what this request has done."""
        return with_notice(path, self.request, self.told)

    def what_was_done(self) -> object:
        """The sentence for the change that led here, with a link to its event where there is one; None for none."""
        event = told_event(self.request)
        sentence = None if event is None else self.told.get(event.event)
        return None if sentence is None else self.words.t(sentence)

    def navigation(self) -> tuple[Group, ...]:
        """The links beside the page; none unless it says so."""
        return ()

    def switcher(self) -> Switcher | None:
        """The menu that changes the organization, if there is more than one."""
        return None

    def shared(self) -> Mapping[str, object]:
        """The frame, and what was just done."""
        return {"frame": self._frame(), "done": self.what_was_done()}

    def _frame(self) -> Frame:
        user = self.subject.user
        name = user.display_name if isinstance(user, HumanUser) else user.user_name
        return Frame(
            home=self.home,
            groups=self.navigation(),
            person=Person(name=name, login_name=self.subject.login_name),
            sign_out=ASK,
            account_items=self._account_items(),
            switcher=self.switcher(),
            switch=SWITCH,
            others=self._others(),
        )

    def _account_items(self) -> tuple[Item, ...]:
        manages = bool(self.request.identity.held)
        return tuple(
            Item(label=self.words.t(entry.label), href=entry.href, current=entry.href == self.home)
            for entry in self.pages.menu
            if manages or not entry.for_managers
        )

    def _others(self) -> tuple[OtherAccount, ...]:
        sessions = self.request.services.sessions
        accounts = sessions.of_browser(self.request.browser.sessions.values())
        return tuple(
            OtherAccount(reference=one.session.id, login_name=one.subject.login_name)
            for one in accounts
            if sessions.live(one) and one.session.id != self.account.session.id
        )


def version_of(text: str) -> int:
    """The version that a form was drawn with. Raises Conflict if it does not say so."""
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise Conflict("The form does not say what it changes.")
    return int(text)


def add_menu_entry(config: Configurator, label: str, href: str, *, for_managers: bool = False) -> None:
    """Directive for plugins: a place of one's own in everybody's account menu."""
    config.registry.pages.menu.append(MenuEntry(label, href, for_managers))


def includeme(config: Configurator) -> None:
    """Make the directive known."""
    config.add_directive("add_menu_entry", add_menu_entry)
