"""/account/browsers: browsers where the user skips the second factor."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.api.pages import Form, FormPage, describe_user_agent
from identity.plugins.account.pages.account_page import REMEMBERED_BROWSERS_PATH, SECURITY_PATH, AccountPage

BROWSER_FIELD = "browser"


class RememberedBrowsersPage(AccountPage, FormPage):
    """One row per browser, with a button to forget it."""

    template = "account/remembered_browsers.html"
    section = SECURITY_PATH

    def template_variables(self) -> Mapping[str, object]:
        found = self.request.services.remembered_browsers.list_by_user(self.subject.user.id)
        return {"rows": [(item, describe_user_agent(item.user_agent, self.translator)) for item in found]}

    def submit(self, form: Form) -> Response:
        """Forget one. Raises NotFound for a browser of another user."""
        self.request.services.remembered_browsers.forget(self.subject, form.text(BROWSER_FIELD))
        return self.redirect(self.path_with_flash(REMEMBERED_BROWSERS_PATH))
