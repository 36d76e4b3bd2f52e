"""/account/switch: another account of this browser, or one more; posted to from the account menu."""

from pyramid.response import Response

from identity.domain.errors import NotFound
from identity.http.sign_ins import sign_in_anew
from identity.pages.drawing import HOME
from identity.pages.forms import Form
from identity.pages.page import FormPage
from identity.plugins.account.pages.account_page import AccountPage

#: The value for an account that is not signed in here.
NEW = "new"


class Switch(AccountPage, FormPage):
    """There is nothing to look at here: the buttons stand in the menu of every page."""

    section = ""

    def show(self) -> Response:
        return self.redirect(HOME)

    def submit(self, form: Form) -> Response:
        """Work with the account that was chosen. Raises NotFound if it is not signed in at this browser."""
        reference = form.one("session")
        if reference == NEW:
            return sign_in_anew(self.request, target=HOME)
        sessions = self.request.services.sessions
        accounts = sessions.of_browser(self.request.browser.sessions.values())
        chosen = next((one for one in accounts if one.session.id == reference and sessions.live(one)), None)
        if chosen is None:
            raise NotFound("session", reference)
        sessions.select(chosen)
        return self.redirect(HOME)
