"""/account/password: change the password."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.api.entities import Invalid
from identity.api.pages import Form, FormPage, gettext_lazy
from identity.plugins.account.pages.account_page import SECURITY_PATH, AccountPage


class ChangePasswordPage(AccountPage, FormPage):
    template = "account/change_password.html"
    section = SECURITY_PATH
    fields = ("current_password", "new_password", "new_password_again")
    secret_fields = frozenset(fields)

    def template_variables(self) -> Mapping[str, object]:
        return {
            "login_name": self.subject.login_name,
            "min_length": self.request.services.passwords.min_length(self.subject),
            "ends_access": self.request.registry.application.settings.password_change_ends_access,
        }

    def submit(self, form: Form) -> Response:
        """Store the new password and keep this session; all others end."""
        current, new = form.text("current_password"), form.text("new_password")
        self._validate_new_password(form, current, new)
        subject = self.verify_password(current)
        with self.rate_limited():
            hashed = self.request.services.passwords.hash(new)
        self.request.services.passwords.change(subject, hashed, except_session=self.signed_in_account.session.id)
        response = self.redirect(self.path_with_flash(SECURITY_PATH))
        # The new password invalidated the known-browser cookie of every browser.
        response.headerlist.extend(self.known_browser_headers(subject.user.id))
        return response

    def _validate_new_password(self, form: Form, current: str, new: str) -> None:
        """Raise Invalid for all errors that can be found before the current password is checked."""
        problems: dict[str, str] = {}
        if not current:
            problems["current_password"] = gettext_lazy("Enter your current password.")
        try:
            self.request.services.passwords.require_acceptable(
                new, form.repeated_text("new_password"), owner=self.subject
            )
        except Invalid as refused:
            problems |= refused.fields
        if problems:
            raise Invalid(problems)
