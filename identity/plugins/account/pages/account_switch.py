"""/account/switch: switch to another account of this browser or add one; the account menu posts here."""

from pyramid.response import Response

from identity.api.entities import NotFound
from identity.api.pages import Form, FormPage, Page
from identity.plugins.account.pages.account_page import AccountPage

#: The value for an account that is not signed in here.
ADD_ACCOUNT = "new"


class SwitchAccountPage(AccountPage, FormPage):
    """A page without content: the buttons are in the menu of every page."""

    section = ""

    def template_variables(self) -> Response:
        return self.redirect(Page.ACCOUNT_PATH)

    def submit(self, form: Form) -> Response:
        """Switch to the chosen account. Raises NotFound if it is not signed in at this browser."""
        reference = form.text("session")
        if reference == ADD_ACCOUNT:
            return self.redirect_to_sign_in(Page.ACCOUNT_PATH)
        chosen = next((account for account in self.live_accounts if account.session.id == reference), None)
        if chosen is None:
            raise NotFound("session", reference)
        self.request.services.sessions.select(chosen)
        return self.redirect(Page.ACCOUNT_PATH)
