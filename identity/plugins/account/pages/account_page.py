"""AccountPage: what every page below /account has: the frame, the person, and what was just done."""

from collections.abc import Mapping
from typing import ClassVar

from identity.domain.errors import Invalid
from identity.domain.users import HumanUser, Subject
from identity.domain.words import say
from identity.hashing import Busy
from identity.http.sign_ins import try_password
from identity.pages.drawing import HOME
from identity.pages.frame import Group, Item
from identity.pages.held_back import held_back
from identity.pages.signed_in_page import SignedInPage
from identity.services.attempts import TooManyAttempts

PROFILE = f"{HOME}/profile"
SECURITY = f"{HOME}/security"
PASSWORD = f"{HOME}/password"
SESSIONS = f"{HOME}/sessions"
APPLICATIONS = f"{HOME}/applications"
ACTIVITY = f"{HOME}/activity"
NOT_ME = f"{ACTIVITY}/not-me"
DATA = f"{HOME}/data"

_SECTIONS = (
    (PROFILE, say("Profile"), "users"),
    (SECURITY, say("Security"), "lock"),
    (SESSIONS, say("Sessions"), "device"),
    (APPLICATIONS, say("Applications"), "apps"),
    (ACTIVITY, say("Activity"), "audit"),
    (DATA, say("Data"), "download"),
)

#: What is said after a change, by its event; of several the first one here.
_DONE = {
    "email.link_issued": say("We have sent a link to the new address. It becomes yours once you open it."),
    "user.changed": say("Your profile is saved."),
    "password.changed": say("Your password is changed. All your other sessions are ended."),
    "session.ended": say("Signed out."),
    "consent.withdrawn": say("The application is disconnected."),
    "application.disconnected": say("The application is disconnected."),
}


class AccountPage(SignedInPage):
    """A page of the person who is signed in; it belongs to one section of the navigation."""

    section: ClassVar[str]
    told = _DONE

    @property
    def person(self) -> HumanUser:
        """Whose page it is, as stored right now."""
        person: HumanUser = self.request.services.users.get(self.subject.user.id)
        return person

    def shared(self) -> Mapping[str, object]:
        return {**super().shared(), "parent": self.words.t("Your account")}

    def navigation(self) -> tuple[Group, ...]:
        t = self.words.t
        items = (
            Item(label=t(label), href=href, icon=icon, current=href == self.section) for href, label, icon in _SECTIONS
        )
        return (Group(items=tuple(items)),)

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
