"""Step 3: the chooser."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.api.entities import HumanUser
from identity.api.pages import Form, FormRedisplay, Page, gettext_lazy
from identity.api.sign_in import SignedInAccount, SignInPage

#: The button's value for an account that is not in the list.
ANOTHER_ACCOUNT = "new"


class AccountChooserPage(SignInPage):
    """The accounts of this browser, including signed-out ones."""

    template = "login/account_chooser.html"
    fields = ("session",)

    def template_variables(self) -> Mapping[str, object] | Response:
        """One row per account, the client's login hint first. Continues the sign-in if there is none."""
        if not self.sign_in.accounts:
            return self.redirect_to_next()
        return {"rows": [self._build_row(account) for account in self._accounts()], "return_line": self.return_message}

    def submit(self, form: Form) -> Response:
        reference = form.text("session")
        chosen = next((account for account in self._accounts() if account.session.id == reference), None)
        if reference != ANOTHER_ACCOUNT and (chosen is None or not self.sign_in.matches_organization(chosen)):
            raise FormRedisplay(gettext_lazy("Choose an account."))
        self.request.services.sign_ins.select_account(self.pending_authorization, chosen)
        return self.redirect_to_next()

    def _accounts(self) -> list[SignedInAccount]:
        """The hinted account first, accounts that cannot be chosen last."""

        def sort_key(account: SignedInAccount) -> tuple[bool, bool]:
            return not self.sign_in.matches_hint(account), not self.sign_in.matches_organization(account)

        return sorted(self.sign_in.accounts, key=sort_key)

    def _build_row(self, account: SignedInAccount) -> dict[str, object]:
        user = account.subject.user
        name = user.display_name if isinstance(user, HumanUser) else user.user_name
        return {
            # It grants nothing without the browser's cookies.
            "reference": account.session.id,
            "name": name,
            "initials": Page.initials(name),
            "login_name": account.subject.login_name,
            "is_signed_in": self.sign_in.is_live(account),
            "is_selectable": self.sign_in.matches_organization(account),
        }
