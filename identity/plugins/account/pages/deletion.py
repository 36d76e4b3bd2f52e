"""Account deletion: the request, and its cancellation during a sign-in."""

import unicodedata
from collections.abc import Mapping

from pyramid.response import Response

from identity.api.entities import Conflict, HumanUser, Invalid, NotFound
from identity.api.pages import Form, FormPage, FormRedisplay, gettext_lazy
from identity.api.sign_in import SignInPage
from identity.plugins.account.interactions import CancelAccountDeletion
from identity.plugins.account.pages.account_page import DATA_PATH, DELETION_REQUESTED_PATH, AccountPage


class DeleteAccountPage(AccountPage, FormPage):
    """Asks for the user name, after a recent authentication. 404 if the policy forbids it."""

    template = "account/delete_account.html"
    section = DATA_PATH
    requires_recent_authentication = True
    fields = ("confirm_name",)

    def template_variables(self) -> Mapping[str, object]:
        if not self.request.services.account_deletions.is_allowed(self.subject):
            raise NotFound("page", DATA_PATH)
        return {"user_name": self.subject.user.user_name}

    def submit(self, form: Form) -> Response:
        self.template_variables()
        name = self.subject.user.user_name
        if _normalize_name(form.text("confirm_name")) != _normalize_name(name):
            raise Invalid({"confirm_name": gettext_lazy("Type {name} to confirm.", name=name)})
        try:
            self.request.services.account_deletions.schedule(self.subject)
        except Conflict as refused:
            raise FormRedisplay(refused.args[0], status=409) from None
        return self.without_session_cookie(self.redirect(DELETION_REQUESTED_PATH))


class CancelDeletionPage(SignInPage):
    """Asks an authenticated user whether to cancel the deletion. Otherwise the sign-in does not go on."""

    template = "account/cancel_deletion.html"
    interaction = CancelAccountDeletion.name

    def template_variables(self) -> Mapping[str, object]:
        user = self.human_user.user
        deletion_at = user.deletion_at if isinstance(user, HumanUser) else None
        return {"login_name": self.human_user.login_name, "day": deletion_at}

    def submit(self, form: Form) -> Response:
        self.request.services.account_deletions.cancel_own(self.human_user)
        return self.redirect_to_next()


def _normalize_name(name: str) -> str:
    return unicodedata.normalize("NFC", name).strip()
