"""AccountPage: what every page below /account has: the frame, the person, and what was just done."""

from collections.abc import Mapping
from typing import ClassVar

from identity.domain.errors import Conflict, Invalid
from identity.domain.sessions import SignedIn
from identity.domain.users import HumanUser, Subject
from identity.domain.words import say
from identity.hashing import Busy
from identity.http.locale import UI_LOCALES
from identity.http.sign_ins import try_password
from identity.pages.drawing import HOME
from identity.pages.frame import Frame, Group, Item, OtherAccount, Person
from identity.pages.held_back import held_back
from identity.pages.notices import told_event, with_notice
from identity.pages.page import Page
from identity.provider.endpoints.end_session import ASK
from identity.services.passwords import TooManyAttempts

PROFILE = f"{HOME}/profile"
PASSWORD = f"{HOME}/password"
SESSIONS = f"{HOME}/sessions"
APPLICATIONS = f"{HOME}/applications"
SWITCH = f"{HOME}/switch"

_SECTIONS = (
    (PROFILE, say("Profile"), "users"),
    (PASSWORD, say("Password"), "lock"),
    (SESSIONS, say("Sessions"), "device"),
    (APPLICATIONS, say("Applications"), "apps"),
)

#: What is said after a change, by its event; of several the first one here.
_DONE = {
    "email.link_issued": say("We have sent a link to the new address. It becomes yours once you open it."),
    "user.changed": say("Your profile is saved."),
    "password.changed": say("Your password is changed. All your other sessions are ended."),
    "session.ended": say("Signed out."),
    "application.disconnected": say("The application is disconnected."),
}


class AccountPage(Page):
    """A page of the person who is signed in; it belongs to one section of the navigation."""

    section: ClassVar[str]

    @property
    def account(self) -> SignedIn:
        """The session with which the page works."""
        account: SignedIn = self.request.account
        return account

    @property
    def subject(self) -> Subject:
        """Whose page it is."""
        return self.account.subject

    @property
    def person(self) -> HumanUser:
        """The same, as stored right now."""
        person: HumanUser = self.request.services.users.get(self.subject.user.id)
        return person

    def preferred_locales(self) -> str:
        """The person's own language, unless the address asks for another."""
        user = self.subject.user
        if UI_LOCALES in self.request.GET or not isinstance(user, HumanUser):
            return ""
        return user.profile.locale.replace("_", "-")

    def shared(self) -> Mapping[str, object]:
        """The frame, and what was just done."""
        event = told_event(self.request)
        done = None if event is None else _DONE.get(event.event)
        return {"frame": self._frame(), "parent": self.words.t("Your account"), "done": done and self.words.t(done)}

    def done(self, path: str) -> str:
        """The path, which is then to say what this request has done."""
        return with_notice(path, self.request, _DONE)

    def prove(self, current: str) -> Subject:
        """The person, once the present password is right: a session left open is not enough to take an account.

        It is tried as on the sign-in pages, and what was tried stands. Raises Invalid for ``current_password``; Again.
        """
        if not current:
            raise Invalid({"current_password": say("Enter your present password.")})
        try:
            subject = try_password(self.request, self.subject.login_name, current)
        except (TooManyAttempts, Busy) as problem:
            raise held_back(problem) from None
        # Nobody waits for a lock while whatever follows takes its time.
        self.request.commit()
        if subject is None or subject.user.id != self.subject.user.id:
            raise Invalid({"current_password": say("This is not your present password.")})
        return subject

    def _frame(self) -> Frame:
        t = self.words.t
        items = (
            Item(label=t(label), href=href, icon=icon, current=href == self.section) for href, label, icon in _SECTIONS
        )
        user = self.subject.user
        name = user.display_name if isinstance(user, HumanUser) else user.user_name
        return Frame(
            home=HOME,
            groups=(Group(items=tuple(items)),),
            person=Person(name=name, login_name=self.subject.login_name),
            sign_out=ASK,
            account_items=(Item(label=t("Your account"), href=HOME, current=True),),
            switch=SWITCH,
            others=self._others(),
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
