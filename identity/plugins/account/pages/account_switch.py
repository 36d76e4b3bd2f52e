"""/account/switch: switch to another account of this browser or add one; the account menu posts here."""

from pyramid.response import Response

from identity.domain.errors import NotFound
from identity.http.sign_in_attempts import redirect_to_sign_in
from identity.pages.forms import Form
from identity.pages.page import FormPage
from identity.pages.rendering import ACCOUNT_PATH
from identity.plugins.account.pages.account_page import AccountPage

#: The value for an account that is not signed in here.
ADD_ACCOUNT = "new"


class SwitchAccountPage(AccountPage, FormPage):
    """A page without content: the buttons are in the menu of every page."""

    section = ""

    def template_variables(self) -> Response:
        return self.redirect(ACCOUNT_PATH)

    def submit(self, form: Form) -> Response:
        """Switch to the chosen account. Raises NotFound if it is not signed in at this browser."""
        reference = form.text("session")
        if reference == ADD_ACCOUNT:
            return redirect_to_sign_in(self.request, target=ACCOUNT_PATH)
        sessions = self.request.services.sessions
        accounts = sessions.list_by_secrets(self.request.browser_state.sessions.values())
        chosen = next(
            (account for account in accounts if account.session.id == reference and sessions.is_live(account)), None
        )
        if chosen is None:
            raise NotFound("session", reference)
        sessions.select(chosen)
        return self.redirect(ACCOUNT_PATH)
