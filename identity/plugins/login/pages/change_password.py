"""Step 5: a forced password change."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.api.pages import Form
from identity.api.sign_in import SignInPage
from identity.plugins.login.interactions import ChangePasswordInteraction


class ForcedPasswordChangePage(SignInPage):
    """For users who signed in with a password that a manager set, or a temporary one."""

    template = "login/change_password.html"
    fields = ("new_password", "new_password_again")
    secret_fields = frozenset(fields)
    interaction = ChangePasswordInteraction.name

    def template_variables(self) -> Mapping[str, object]:
        person = self.human_user
        return {"login_name": person.login_name, "min_length": self.request.services.passwords.min_length(person)}

    def submit(self, form: Form) -> Response:
        """Store the new password and keep this sign-in; all other sessions and tokens of the user end."""
        services, person, password = self.request.services, self.human_user, form.text("new_password")
        services.passwords.require_acceptable(password, form.repeated_text("new_password"), owner=person)
        with self.rate_limited():
            services.passwords.refuse_current_password(person.user.id, password)
            hashed = services.passwords.hash(password)
        services.passwords.change(person, hashed, except_session=self.pending_authorization.id)
        services.sign_ins.complete_interaction(self.pending_authorization, ChangePasswordInteraction.name)
        return self.redirect_to_next()
