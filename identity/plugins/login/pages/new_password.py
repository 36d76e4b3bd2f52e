"""Step 5: a password of one's own."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.domain.users import HumanUser
from identity.hashing import Busy
from identity.pages.forms import Form
from identity.pages.held_back import held_back
from identity.pages.sign_in_page import SignInPage
from identity.plugins.login.interactions import ChangePassword


class NewPassword(SignInPage):
    """For whoever has just given a password that was set by somebody else, or for one use."""

    template = "login/new_password.html"
    fields = ("new_password", "new_password_again")
    secret_fields = frozenset(fields)

    def show(self) -> Mapping[str, object] | Response:
        """Whose password; on with the sign-in if there is nothing to change."""
        proved = self.sign_in.proved
        if proved is None or not self.is_next(ChangePassword.name):
            return self.go_on()
        return {
            "login_name": proved.login_name,
            "min_length": self.request.services.passwords.min_length(proved),
        }

    def submit(self, form: Form) -> Response:
        """Keep the new password and this sign-in; everything else of the person ends."""
        proved = self.sign_in.proved
        if proved is None or not self.is_next(ChangePassword.name):
            return self.go_on()
        services = self.request.services
        email = proved.user.profile.email if isinstance(proved.user, HumanUser) else ""
        names = (proved.user.user_name, proved.login_name, email)
        services.passwords.check(form.one("new_password"), form.again("new_password"), whose=proved, names=names)
        try:
            services.passwords.refuse_present(proved.user.id, form.one("new_password"))
            hashed = services.passwords.hash(form.one("new_password"))
        except Busy as problem:
            raise held_back(problem) from None
        services.passwords.change(proved, hashed, keep=self.pending.id)
        services.sign_ins.done(self.pending, ChangePassword.name)
        return self.go_on()
