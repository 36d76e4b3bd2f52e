"""Step 5: a password of one's own."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.domain.users import HumanUser
from identity.pages.forms import Form
from identity.pages.rate_limited import rate_limit_response
from identity.pages.sign_in_page import SignInPage
from identity.password_hashing import ServerBusy
from identity.plugins.login.interactions import ChangePasswordInteraction


class ForcedPasswordChangePage(SignInPage):
    """For whoever has just given a password that was set by somebody else, or for one use."""

    template = "login/change_password.html"
    fields = ("new_password", "new_password_again")
    secret_fields = frozenset(fields)

    def template_variables(self) -> Mapping[str, object] | Response:
        """Whose password; on with the sign-in if there is nothing to change."""
        proved = self.sign_in.authenticated_subject
        if proved is None or not self.is_next_interaction(ChangePasswordInteraction.name):
            return self.redirect_to_next()
        return {
            "login_name": proved.login_name,
            "min_length": self.request.services.passwords.min_length(proved),
        }

    def submit(self, form: Form) -> Response:
        """Keep the new password and this sign-in; everything else of the person ends."""
        proved = self.sign_in.authenticated_subject
        if proved is None or not self.is_next_interaction(ChangePasswordInteraction.name):
            return self.redirect_to_next()
        services = self.request.services
        email = proved.user.profile.email if isinstance(proved.user, HumanUser) else ""
        names = (proved.user.user_name, proved.login_name, email)
        services.passwords.require_acceptable(
            form.text("new_password"), form.repeated_text("new_password"), owner=proved, names=names
        )
        try:
            services.passwords.refuse_current_password(proved.user.id, form.text("new_password"))
            hashed = services.passwords.hash(form.text("new_password"))
        except ServerBusy as problem:
            raise rate_limit_response(problem) from None
        services.passwords.change(proved, hashed, except_session=self.pending_authorization.id)
        services.sign_ins.complete_interaction(self.pending_authorization, ChangePasswordInteraction.name)
        return self.redirect_to_next()
