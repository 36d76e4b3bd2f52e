"""Step 4: a new account."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.domain.authentication import BY_PASSWORD
from identity.domain.errors import Denied, Invalid
from identity.domain.organizations import Organization
from identity.domain.words import say
from identity.hashing import Busy
from identity.pages.forms import Form
from identity.pages.held_back import held_back
from identity.pages.mails import mail_announcement
from identity.plugins.login.interactions import Create, open_organization
from identity.plugins.login.pages.sign_in_page import SignInPage
from identity.services.commands import decode
from identity.services.commands.users import RegisterUser
from identity.services.passwords import TooManyAttempts

_TEXTS = ("user_name", "given_name", "family_name", "email")
_MISSING = {
    "given_name": say("Enter your given name."),
    "family_name": say("Enter your family name."),
    "email": say("Enter your email address."),
}


class Register(SignInPage):
    """With mail, the account is made by a link in it, and nobody learns here which names and addresses are known."""

    template = "login/register.html"
    fields = (*_TEXTS, "password", "password_again")
    secret_fields = frozenset({"password", "password_again"})

    @property
    def organization(self) -> Organization:
        """Where the account will be. Raises Denied if registration is closed there."""
        found = open_organization(self.sign_in)
        if found is None:
            raise Denied("This organization does not let people create accounts.")
        return found

    def show(self) -> Mapping[str, object]:
        """Where the account will be."""
        return {"organization": self.organization, "min_length": self.request.services.passwords.min_length}

    def submit(self, form: Form) -> Response:
        """Make the account, or send the mail that will."""
        organization = self.organization
        command = self._command(form)
        try:
            self.request.services.passwords.count_address()
            # What is counted stands, and nobody waits for a lock while the password is hashed.
            self.request.commit()
            hashed = self.request.services.passwords.hash(form.one("password"))
        except (TooManyAttempts, Busy) as problem:
            raise held_back(problem, password=False) from None
        services = self.request.services
        if services.mails.enabled:
            announced = services.registration.announce(organization, command, hashed, sign_in=self.pending.id)
            mail_announcement(self.request, organization, command.email, announced, language=self.language)
            return self.redirect(f"{self.root}/register/sent")
        subject = services.registration.register(organization, command, hashed)
        pending = services.sign_ins.prove(self.pending, subject, (BY_PASSWORD,))
        services.sign_ins.done(pending, Create.name)
        return self.go_on()

    def _command(self, form: Form) -> RegisterUser:
        """What was typed. Raises Invalid for all that is wrong with it at once."""
        problems: dict[str, str] = {}
        command = None
        try:
            command = decode(RegisterUser, form.texts(*_TEXTS))
        except Invalid as refused:
            problems |= refused.fields
        # What is said of an empty field tells which one it is: the summary above the form lists them.
        problems |= {name: sentence for name, sentence in _MISSING.items() if not form.one(name).strip()}
        names = (form.one("user_name"), form.one("email"))
        try:
            self.request.services.passwords.check(
                form.one("password"), form.again("password"), names=names, field="password"
            )
        except Invalid as refused:
            problems |= refused.fields
        if command is None or problems:
            raise Invalid(problems)
        return command


class RegistrationSent(SignInPage):
    """What comes after the form where a mail finishes the account: the same for known and unknown addresses."""

    template = "login/register_sent.html"

    def show(self) -> Mapping[str, object]:
        """Nothing but words."""
        return {"without_form": True}
