"""Step 5: a forced password change."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.api.entities import HumanUser
from identity.api.pages import Form
from identity.api.sign_in import SignInPage
from identity.plugins.login.interactions import ChangePasswordInteraction


class ForcedPasswordChangePage(SignInPage):
    """For users who signed in with a password that a manager set, or a temporary one."""

    template = "login/change_password.html"
    fields = ("new_password", "new_password_again")
    secret_fields = frozenset(fields)

    def template_variables(self) -> Mapping[str, object] | Response:
        proved = self.sign_in.authenticated_subject
        if proved is None or not self.is_next_interaction(ChangePasswordInteraction.name):
            return self.redirect_to_next()
        return {"login_name": proved.login_name, "min_length": self.request.services.passwords.min_length(proved)}

    def submit(self, form: Form) -> Response:
        """Store the new password and keep this sign-in; all other sessions and tokens of the user end."""
        proved = self.sign_in.authenticated_subject
        if proved is None or not self.is_next_interaction(ChangePasswordInteraction.name):
            return self.redirect_to_next()
        services = self.request.services
        email = proved.user.profile.email if isinstance(proved.user, HumanUser) else ""
        names = (proved.user.user_name, proved.login_name, email)
        services.passwords.require_acceptable(
            form.text("new_password"), form.repeated_text("new_password"), owner=proved, names=names
        )
        with self.rate_limited():
            services.passwords.refuse_current_password(proved.user.id, form.text("new_password"))
            hashed = services.passwords.hash(form.text("new_password"))
        services.passwords.change(proved, hashed, except_session=self.pending_authorization.id)
        services.sign_ins.complete_interaction(self.pending_authorization, ChangePasswordInteraction.name)
        return self.redirect_to_next()
