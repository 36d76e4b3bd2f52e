"""/register: the page behind the link that completes a registration."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.api.entities import Denied, Organization, Subject
from identity.api.pages import Form, FormPage, Page, RegistrationForm, gettext_lazy, render_error_page
from identity.api.plugins import cached_property
from identity.api.services import PendingRegistration, RegisterUser
from identity.api.sign_in import PendingAuthorization, Proof, SignInUnavailable
from identity.plugins.account.one_time_links.link_page import OneTimeLinkPage

#: The interaction that ends with the account's creation.
_CREATE_FIELD = "create"


class CompleteRegistrationPage(OneTimeLinkPage, FormPage):
    """In the registering browser, shows the submitted data, asks for another user name if it is taken, and creates the
    account. In any other browser only the address is used, and the user enters all data again: an attacker may have
    submitted the form with a password that they know."""

    template = "account/complete_registration.html"
    secret_fields = frozenset(RegistrationForm.PASSWORD_FIELDS)

    @property
    def fields(self) -> tuple[str, ...]:  # type: ignore[override]  # they depend on the organization
        attributes = RegistrationForm.attribute_fields(self.request, self.pending_registration.organization).names
        return (*RegistrationForm.NAME_FIELDS, *attributes, *RegistrationForm.PASSWORD_FIELDS)

    @cached_property
    def pending_registration(self) -> PendingRegistration:
        """The link's registration. Raises InvalidOneTimeLink."""
        registration: PendingRegistration = self.request.services.registration.find_pending(self.link_secret)
        return registration

    @cached_property
    def pending_authorization(self) -> PendingAuthorization | None:
        """The sign-in of the registration, if it still waits in this browser."""
        request, request_id = self.request, self.pending_registration.sign_in_id
        try:
            pending: PendingAuthorization = request.services.sign_ins.find(
                request_id, request.browser_state.sign_ins.get(request_id)
            )
        except SignInUnavailable:
            return None
        return pending

    def branding_organization(self) -> Organization | None:
        return self.pending_registration.organization

    def template_variables(self) -> Mapping[str, object]:
        organization = self.pending_registration.organization
        return {
            "email": self.pending_registration.command.email,
            "organization": organization,
            "attributes": RegistrationForm.attribute_fields(self.request, organization).render(self.translator),
            "registered": None if self.pending_authorization is None else self.pending_registration.command,
            "taken": self.pending_registration.is_user_name_taken,
            "min_length": self.request.services.passwords.min_length(organization),
        }

    def initial_values(self) -> Mapping[str, str]:
        return {} if self.pending_authorization is None else {"user_name": self.pending_registration.command.user_name}

    def submit(self, form: Form) -> Response:
        """Create the account and sign in, continuing the sign-in of the registration if it still waits in this
        browser."""
        announced, pending = self.pending_registration, self.pending_authorization
        command, hashed = announced.command, None
        if pending is None:
            command, hashed = self._parse_form(form)
        elif announced.is_user_name_taken:
            command = RegisterUser.decode({**dict(command), "user_name": form.text("user_name")})
        try:
            subject = self.request.services.registration.complete(self.link_secret, command, hashed)
        except Denied:
            return render_error_page(
                self.request,
                403,
                gettext_lazy("Registration is closed"),
                [
                    gettext_lazy(
                        "{organization} does not allow registration at the moment.",
                        organization=announced.organization.name,
                    )
                ],
            )
        return self._redirect_to_next(pending, subject)

    def _parse_form(self, form: Form) -> tuple[RegisterUser, str]:
        command = RegistrationForm.parse(
            self.request, self.pending_registration.organization, form, self.pending_registration.command.email
        )
        # Hold no lock while the password is hashed.
        self.request.commit()
        with self.rate_limited():
            return command, self.request.services.passwords.hash(form.text("password"))

    def _redirect_to_next(self, pending: PendingAuthorization | None, subject: Subject) -> Response:
        if pending is None:
            return self.redirect_to_sign_in(Page.ACCOUNT_PATH, login_name=subject.login_name)
        # The password was entered in this sign-in and this browser.
        sign_ins = self.request.services.sign_ins
        sign_ins.complete_interaction(sign_ins.add_proof(pending, subject, (Proof.PASSWORD_METHOD,)), _CREATE_FIELD)
        return self.redirect(f"/login/{pending.id}/registered")
