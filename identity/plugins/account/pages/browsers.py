"""/account/browsers: where the person is not asked for a second factor."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.pages.devices import device
from identity.pages.forms import Form
from identity.pages.page import FormPage
from identity.plugins.account.pages.account_page import BROWSERS, SECURITY, AccountPage

#: The field that names a browser.
BROWSER = "browser"


class Browsers(AccountPage, FormPage):
    """One row a browser, and a button in each by which it is asked again."""

    template = "account/browsers.html"
    section = SECURITY

    def show(self) -> Mapping[str, object]:
        found = self.request.services.remembered_browsers.of(self.subject.user.id)
        return {"rows": [(one, device(one.user_agent, self.words)) for one in found]}

    def submit(self, form: Form) -> Response:
        """Forget one. Raises NotFound for what is not a browser of this person."""
        self.request.services.remembered_browsers.forget(self.subject, form.one(BROWSER))
        return self.redirect(self.done(BROWSERS))
