"""/account/data: all that is kept of the person, to take along."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.http.documents import sent_as_file
from identity.pages.forms import Form
from identity.pages.page import FormPage
from identity.plugins.account.pages.account_page import DATA, AccountPage
from identity.services.own_data import own_data


class Data(AccountPage, FormPage):
    """Says what is in the document, and answers it as a file."""

    template = "account/data.html"
    section = DATA
    needs_fresh = True

    def before(self) -> Response | None:
        """Looked at by whoever is signed in; taken by whoever has just proved who they are."""
        return super().before() if self.request.method == "POST" else None

    def show(self) -> Mapping[str, object]:
        return {"may_delete": self.request.services.deletions.allowed(self.subject)}

    def submit(self, form: Form) -> Response:
        """The file; that it was taken is written before."""
        subject, request = self.subject, self.request
        request.services.own_account.take_along(subject)
        further = {name: provide(request, subject) for name, provide in self.pages.account_data.items()}
        return sent_as_file(request, "account.json", lambda services: own_data(services, subject, further))
