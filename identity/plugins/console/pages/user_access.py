"""How a person first gets in, or gets in again: a new account, a link for a password, a one-time password."""

from collections.abc import Mapping, Sequence
from typing import Final

from pyramid.response import Response

from identity.domain.users import HumanUser, Subject
from identity.domain.words import say
from identity.http import targets
from identity.pages.forms import Form
from identity.pages.mails import mail_initial, works_once
from identity.plugins.console.confirm_page import ConfirmPage
from identity.plugins.console.console_page import CONSOLE, ConsoleForm, ConsolePage
from identity.plugins.console.pages.users import LIST, MISSING, ONE, SECTION, OfUser
from identity.plugins.console.places import Place
from identity.services.commands.users import InviteHumanUser
from identity.services.users import Initial

_LINK: Final = "link"
_PASSWORD: Final = "one_time_password"  # noqa: S105 - a kind

_ALREADY = say("This was already done; the link or password was shown then. Make a new one if you did not save it.")


def _shown_once(page: ConsolePage, user: HumanUser, initial: Initial, title: str, *, new: bool) -> Response:
    """The only answer that ever holds it: there is nothing to redirect to. It is mailed too where that can be done."""
    if page.organization is None:
        raise ValueError("a user belongs to an organization")
    subject = Subject(user, page.organization)
    mailed = mail_initial(page.request, subject, initial, new=new, language=page.language)
    lifetime = page.services.passwords.link_lifetime(user.id)
    shown = {
        "title": page.words.t(title),
        "login_name": subject.login_name,
        "initial": initial,
        "works_once": works_once(lifetime, page.words),
        "mailed": user.profile.email if mailed else "",
        "back": f"{CONSOLE}/{SECTION}/{user.id}",
    }
    return page.draw(shown, template="console/user_initial.html")


class NewUser(ConsoleForm):
    """Makes an account, and shows once what its person first enters it by."""

    template = "console/new_user_form.html"
    section = SECTION
    fields = ("user_name", "given_name", "family_name", "email", "initial")
    missing = MISSING
    creates = True

    def title(self) -> str:
        """The heading."""
        return say("New user")

    def trail(self) -> Sequence[tuple[str, str]]:
        """Below the list."""
        return [(say("Users"), f"{self.root}/{SECTION}")]

    def values(self) -> Mapping[str, str]:
        """A link: then nobody but the person ever knows the password."""
        return {"initial": _LINK}

    def show(self) -> Mapping[str, object]:
        """What to choose from."""
        return {"mailing": self.services.mails.enabled, "back": self.trail()[-1][1]}

    def submit(self, form: Form) -> Response:
        """Make it."""
        values = form.texts(*self.fields)
        command = self.decoded(InviteHumanUser, {**values, "initial": values["initial"] or _LINK})
        self.use_once(form, _ALREADY)
        user, initial = self.services.users.invite(self.context.value.id, command, by=self.principal)
        return _shown_once(self, user, initial, say("User created"), new=True)


class _NewAccess(OfUser, ConfirmPage):
    fields = ()
    danger = False
    creates = True

    def back(self) -> str:
        return f"{self.href}#password"

    def make(self) -> Initial:
        """What the person gets."""
        raise NotImplementedError

    def made(self) -> str:
        """The heading of the page that shows it."""
        raise NotImplementedError

    def submit(self, form: Form) -> Response:
        self.use_once(form, _ALREADY)
        return _shown_once(self, self.user, self.make(), self.made(), new=False)


class NewPasswordLink(_NewAccess):
    """Asks before a link is made by which the person chooses a new password."""

    def question(self) -> str:
        """For whom."""
        return say("Make a new password link for {name}?", name=self.user.display_name)

    def effects(self) -> Sequence[str]:
        """Nothing ends."""
        return [
            say("Nothing ends before the link is used: the present password and all sessions stay."),
            say("Links that were made before stop working."),
        ]

    def label(self) -> str:
        """The button."""
        return say("Make link")

    def keep(self) -> str:
        """The way back."""
        return say("Cancel")

    def make(self) -> Initial:
        """The link."""
        return Initial(_LINK, self.services.users.new_password_link(self.user.id, by=self.principal))

    def made(self) -> str:
        """The heading."""
        return say("New password link")


class OneTimePassword(_NewAccess):
    """Asks before the present password is replaced."""

    def question(self) -> str:
        """For whom."""
        return say("Set a one-time password for {name}?", name=self.user.display_name)

    def effects(self) -> Sequence[str]:
        """The present password ends."""
        return [
            say("The present password stops working at once. All sessions, links and tokens of the person end."),
            say("The new one has to be changed at the next sign-in."),
        ]

    def label(self) -> str:
        """The button."""
        return say("Set one-time password")

    def keep(self) -> str:
        """The way back."""
        return say("Keep the present password")

    def make(self) -> Initial:
        """The password."""
        return Initial(_PASSWORD, self.services.users.one_time_password(self.user.id, by=self.principal))

    def made(self) -> str:
        """The heading."""
        return say("One-time password")


PLACES = (
    Place(f"{LIST}/new", NewUser, "user.write", targets.organization),
    Place(f"{ONE}/password-link", NewPasswordLink, "user.write", targets.user),
    Place(f"{ONE}/one-time-password", OneTimePassword, "user.write", targets.user),
)
