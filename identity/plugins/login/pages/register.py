"""Step 4: a new account."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.domain.authentication import BY_PASSWORD
from identity.domain.errors import Denied
from identity.domain.organizations import Organization
from identity.domain.words import say
from identity.hashing import Busy
from identity.pages.forms import Form
from identity.pages.held_back import held_back
from identity.pages.mails import mail_announcement
from identity.pages.registration import NAMES, SECRETS, typed_account
from identity.pages.sign_in_page import SignInPage
from identity.plugins.login.interactions import Create, open_organization
from identity.services.attempts import TooManyAttempts


class Register(SignInPage):
    """With mail, the account is made by a link in it, and nobody learns here which names and addresses are known."""

    template = "login/register.html"
    fields = (*NAMES, "email", *SECRETS)
    secret_fields = frozenset(SECRETS)

    @property
    def organization(self) -> Organization:
        """Where the account will be. Raises Denied if registration is closed there."""
        found = open_organization(self.sign_in, self.request.services)
        if found is None:
            raise Denied(say("This organization does not let people create accounts."))
        return found

    def show(self) -> Mapping[str, object]:
        return {
            "organization": self.organization,
            "min_length": self.request.services.passwords.min_length(self.organization),
        }

    def submit(self, form: Form) -> Response:
        organization = self.organization
        command = typed_account(self.request, organization, form, form.one("email"))
        try:
            # Committed, so the count stands and no lock is held while the password is hashed.
            counted = self.request.once("registration", lambda: self.request.services.attempts.count_request())
            hashed = self.request.services.passwords.hash(form.one("password"))
        except TooManyAttempts as problem:
            raise held_back(problem, password=False) from None
        except Busy as problem:
            self.request.services.attempts.give_back(counted)
            raise held_back(problem, password=False) from None
        services = self.request.services
        if services.mails.enabled:
            announced = services.registration.announce(organization, command, hashed, sign_in=self.pending.id)
            client = self.sign_in.client
            mail_announcement(
                self.request,
                organization,
                command.email,
                announced,
                language=self.language,
                application=None if client is None else client.application,
            )
            return self.redirect(f"{self.root}/register/sent")
        subject = services.registration.register(organization, command, hashed)
        pending = services.sign_ins.prove(self.pending, subject, (BY_PASSWORD,))
        services.sign_ins.done(pending, Create.name)
        return self.redirect(f"{self.root}/registered")


class Registered(SignInPage):
    """What comes after a new account: the login name, of which only the first part was typed."""

    template = "login/registered.html"

    def show(self) -> Mapping[str, object] | Response:
        proved = self.sign_in.proved
        if proved is None or not self.sign_in.done(Create.name):
            return self.go_on()
        return {"login_name": proved.login_name, "organization": proved.organization}

    def submit(self, form: Form) -> Response:
        """On with the sign-in."""
        return self.go_on()


class RegistrationSent(SignInPage):
    """What comes after the form where a mail finishes the account: the same for known and unknown addresses."""

    template = "login/register_sent.html"

    def show(self) -> Mapping[str, object]:
        return {"without_form": True}

    def submit(self, form: Form) -> Response:
        """There is nothing to send but the choice of a language."""
        return self.redirect(self.form_path())
