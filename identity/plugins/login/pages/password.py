"""Step 2: the password."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.api.entities import Invalid
from identity.api.grants import Scope
from identity.api.pages import Form, gettext_lazy
from identity.api.sign_in import LoginName, Proof, SignInPage
from identity.plugins.login.interactions import known_login_name

_WRONG = gettext_lazy("The login name or the password is wrong. Check both and try again.")
_PASSWORD_FORBIDDEN = gettext_lazy("{organization} does not allow signing in with a password.")


class LoginPasswordPage(SignInPage):
    """Responds alike to a wrong password, an unknown name and an account that may not sign in."""

    template = "login/password.html"
    fields = ("password",)
    secret_fields = frozenset({"password"})

    @property
    def login_name(self) -> LoginName | None:
        """The login name from the page before, else that of the chosen account."""
        typed = self.pending_authorization.login_name or known_login_name(self.sign_in)
        return LoginName.parse(typed, self.sign_in.effective_organization) if typed else None

    def template_variables(self) -> Mapping[str, object] | Response:
        """The account and what the application receives; redirects to step 1 without a login name."""
        login_name = self.login_name
        if login_name is None:
            return self.redirect(self.base_path)
        authorization = self.sign_in.request
        chosen = self.sign_in.selected_account
        organization, _ = self.branding_owner()
        return {
            "login_name": login_name.full,
            "reset_at": "" if organization is None else organization.primary_domain,
            "again": chosen is not None and not self.sign_in.is_fresh(chosen),
            "received": self.scope_descriptions,
            "options": self.sign_in_options,
            "stays_connected": authorization is not None and Scope.OFFLINE_ACCESS in authorization.scope,
        }

    def submit(self, form: Form) -> Response:
        login_name = self.login_name
        if login_name is None:
            return self.redirect(self.base_path)
        password = form.text("password")
        if not password:
            raise Invalid({"password": gettext_lazy("Enter your password.")})
        subject = self.attempt_password(login_name, password)
        if subject is None:
            raise Invalid({"password": _WRONG})
        self.require_organization(subject)
        self.require_factor_allowed(subject, Proof.PASSWORD_FACTOR, _PASSWORD_FORBIDDEN)
        self.request.services.sign_ins.add_proof(self.pending_authorization, subject, (Proof.PASSWORD_METHOD,))
        return self.redirect_to_next()
