"""Step 4: a new account."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.api.entities import Denied, DomainError, Organization
from identity.api.pages import Form, RegistrationForm, TransactionalMails, gettext_lazy
from identity.api.sign_in import Proof, SignInPage
from identity.plugins.login.interactions import CreateAccountInteraction, find_registration_organization


class RegistrationPage(SignInPage):
    """If mail is configured, a mailed link creates the account, and the page does not reveal known names and
    addresses."""

    template = "login/registration.html"
    secret_fields = frozenset(RegistrationForm.PASSWORD_FIELDS)

    @property
    def organization(self) -> Organization:
        """The organization of the new account. Raises Denied if its registration is closed."""
        found = find_registration_organization(self.sign_in, self.request.services)
        if found is None:
            raise Denied(gettext_lazy("This organization does not let people create accounts."))
        return found

    @property
    def fields(self) -> tuple[str, ...]:  # type: ignore[override]  # they depend on the organization
        attributes = RegistrationForm.attribute_fields(self.request, self.organization).names
        return (*RegistrationForm.NAME_FIELDS, "email", *attributes, *RegistrationForm.PASSWORD_FIELDS)

    def template_variables(self) -> Mapping[str, object]:
        organization = self.organization
        return {
            "organization": organization,
            "attributes": RegistrationForm.attribute_fields(self.request, organization).render(self.translator),
            "min_length": self.request.services.passwords.min_length(organization),
        }

    def submit(self, form: Form) -> Response:
        organization = self.organization
        command = RegistrationForm.parse(self.request, organization, form, form.text("email"))
        with self.rate_limited():
            # Committed, so that the count is kept and no lock is held while the password is hashed.
            counted = self.request.run_once("registration", lambda: self.request.services.attempts.count_request())
            try:
                hashed = self.request.services.passwords.hash(form.text("password"))
            except DomainError:
                self.request.services.attempts.release(counted)
                raise
        services = self.request.services
        if services.mails.is_enabled:
            announced = services.registration.begin(
                organization, command, hashed, sign_in=self.pending_authorization.id
            )
            client = self.sign_in.client
            TransactionalMails(self.request, self.language).queue_registration(
                organization, command.email, announced, application=None if client is None else client.application
            )
            return self.redirect(f"{self.base_path}/register/sent")
        subject = services.registration.register(organization, command, hashed)
        pending = services.sign_ins.add_proof(self.pending_authorization, subject, (Proof.PASSWORD_METHOD,))
        services.sign_ins.complete_interaction(pending, CreateAccountInteraction.name)
        return self.redirect(f"{self.base_path}/registered")


class RegistrationDonePage(SignInPage):
    """Shows the full login name after registration; the form asked for its first part only."""

    template = "login/registration_done.html"

    def template_variables(self) -> Mapping[str, object] | Response:
        proved = self.sign_in.authenticated_subject
        if proved is None or not self.sign_in.has_completed(CreateAccountInteraction.name):
            return self.redirect_to_next()
        return {"login_name": proved.login_name, "organization": proved.organization}

    def submit(self, form: Form) -> Response:
        return self.redirect_to_next()


class RegistrationMailSentPage(SignInPage):
    """Shown after the form if a mailed link creates the account: the same for known and unknown addresses."""

    template = "login/registration_mail_sent.html"

    def template_variables(self) -> Mapping[str, object]:
        return {"without_form": True}

    def submit(self, form: Form) -> Response:
        """The form only serves the choice of a language."""
        return self.redirect(self.form_action())
