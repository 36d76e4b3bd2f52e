"""Step 1: the login name."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.api.entities import Invalid
from identity.api.pages import Form, gettext_lazy
from identity.api.sign_in import LoginName, PendingAuthorization, SignInPage
from identity.plugins.login.interactions import find_registration_organization

_MAX_LOGIN_NAME_LENGTH = 500
#: The button that shows the instance's sign-in methods.
_OTHER_METHOD_FIELD = "another"
_MISSING = gettext_lazy("Enter your login name.")
_MISSING_BY_EMAIL = gettext_lazy("Enter your login name or email address.")


class LoginNamePage(SignInPage):
    """Asks for the login name; its response does not reveal whether the account exists."""

    template = "login/login_name.html"
    fields = ("login_name", _OTHER_METHOD_FIELD)
    non_text_fields = frozenset({_OTHER_METHOD_FIELD})

    def initial_values(self) -> Mapping[str, str]:
        return {"login_name": self.pending_authorization.login_name}

    def template_variables(self) -> Mapping[str, object]:
        return {
            "registration": find_registration_organization(self.sign_in, self.request.services) is not None,
            "return_line": self.return_message,
            "options": self.sign_in_options,
            "by_email": self.can_sign_in_by_email,
            "another_way": self._has_other_sign_in_methods(),
        }

    def _has_other_sign_in_methods(self) -> bool:
        """True if the instance has other sign-in methods than the requested organization."""
        organization, policies = self.sign_in.required_organization, self.request.services.policies
        if organization is None or self.sign_in.has_completed(PendingAuthorization.OTHER_METHOD_STEP):
            return False
        return bool(policies.organization_policy(organization.id).factors != policies.instance_policy().factors)

    def submit(self, form: Form) -> Response:
        if form.text(_OTHER_METHOD_FIELD):
            self.request.services.sign_ins.choose_other_method(self.pending_authorization)
            return self.redirect(self.base_path)
        login_name = form.text("login_name").strip()
        if not login_name:
            raise Invalid({"login_name": _MISSING_BY_EMAIL if self.can_sign_in_by_email else _MISSING})
        if len(login_name) > _MAX_LOGIN_NAME_LENGTH:
            raise Invalid(
                {"login_name": gettext_lazy("Use at most {length} characters.", length=_MAX_LOGIN_NAME_LENGTH)}
            )
        self.request.services.sign_ins.set_login_name(self.pending_authorization, login_name)
        return self.redirect(self.login_name_redirect(LoginName.parse(login_name, self.sign_in.effective_organization)))
