"""AccountPage: what every page below /account has: the frame, the person, and what was just done."""

from collections.abc import Mapping
from typing import ClassVar

from identity.domain.authentication import BY_PASSWORD
from identity.domain.errors import Invalid
from identity.domain.login_names import LoginName
from identity.domain.users import HumanUser, Subject
from identity.domain.words import say
from identity.hashing import Busy
from identity.http.endpoints import context_of
from identity.http.sign_ins import try_password
from identity.pages.drawing import HOME
from identity.pages.forms import Form
from identity.pages.frame import Group, Item
from identity.pages.held_back import held_back
from identity.pages.page import Again
from identity.pages.signed_in_page import SignedInPage
from identity.provider.assurance import could_prove_more
from identity.services.attempts import TooManyAttempts

PROFILE = f"{HOME}/profile"
SECURITY = f"{HOME}/security"
PASSWORD = f"{HOME}/password"
FACTORS = f"{HOME}/factors"
BROWSERS = f"{HOME}/browsers"
SESSIONS = f"{HOME}/sessions"
APPLICATIONS = f"{HOME}/applications"
ACTIVITY = f"{HOME}/activity"
NOT_ME = f"{ACTIVITY}/not-me"
DATA = f"{HOME}/data"
DELETE = f"{DATA}/delete"
#: What is said to whoever has no account any more soon.
LEAVING = "/leaving"

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
    "factor.added": say("The way to sign in is added."),
    "factor.changed": say("The name is changed."),
    "factor.removed": say("The way to sign in is removed."),
    "browser.forgotten": say("The browser is asked again."),
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

    @property
    def password_proves(self) -> bool:
        """True if the password is all by which the person can prove who they are."""
        services, context = self.request.services, context_of(self.request)
        has_one = services.storage.users.find_password(self.subject.user.id) is not None
        return has_one and not could_prove_more(self.subject, (BY_PASSWORD,), context)

    def prove_for(self, form: Form, field: str) -> None:
        """Go on if the person has just proved who they are, as well as they can (security 19.5): by the password in
        this very form where they have nothing stronger, else by a sign-in. Raises Invalid for the field; Again."""
        if self.password_proves:
            self.prove(form.one(field))
        elif not self.is_fresh():
            raise Again(
                say("This asks for a sign-in of the last ten minutes."), link=(self.sign_in_again, say("Sign in again"))
            )

    def prove(self, current: str) -> Subject:
        """The person, once the present password is right: a session left open is not enough to take an account.

        It is tried as on the sign-in pages, and what was tried stands. Raises Invalid for ``current_password``; Again.
        """
        if not current:
            raise Invalid({"current_password": say("Enter your present password.")})
        try:
            # Committed, so no lock is held while the rest takes its time.
            subject: Subject | None = self.request.once(
                "proof", lambda: try_password(self.request, LoginName.of(self.subject.login_name), current)
            )
        except (TooManyAttempts, Busy) as problem:
            raise held_back(problem) from None
        if subject is None or subject.user.id != self.subject.user.id:
            raise Invalid({"current_password": say("This is not your present password.")})
        return subject
