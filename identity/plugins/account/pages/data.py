"""/account/data: all that is kept of the person, to take along."""

from collections.abc import Iterator

from pyramid.response import Response

from identity.http.documents import sent_as_file
from identity.pages.forms import Form
from identity.pages.page import FormPage
from identity.plugins.account.pages.account_page import DATA, AccountPage
from identity.services.bundle import Services
from identity.services.own_data import own_data


class Data(AccountPage, FormPage):
    """Says what is in the document, and answers it as a file."""

    template = "account/data.html"
    section = DATA
    needs_fresh = True

    def before(self) -> Response | None:
        """Looked at by whoever is signed in; taken by whoever has just proved who they are."""
        return super().before() if self.request.method == "POST" else None

    def submit(self, form: Form) -> Response:
        """The file; that it was taken is written before."""
        subject, pages = self.subject, self.pages
        self.request.services.own_account.take_along(subject)

        def document(services: Services) -> Iterator[str]:
            further = {name: provide(services, subject) for name, provide in pages.account_data.items()}
            return own_data(services, subject, further)

        return sent_as_file(self.request, "account.json", document)
