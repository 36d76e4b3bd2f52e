"""/account/data: the data export."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.api.pages import Form, FormPage, json_file_response
from identity.api.services import export_personal_data
from identity.plugins.account.pages.account_page import DATA_PATH, AccountPage


class DataExportPage(AccountPage, FormPage):
    """Describes the document and returns it as a file."""

    template = "account/data_export.html"
    section = DATA_PATH
    requires_recent_authentication = True

    def early_response(self) -> Response | None:
        """Viewing needs a session; the export needs a recent authentication."""
        return super().early_response() if self.request.method == "POST" else None

    def template_variables(self) -> Mapping[str, object]:
        return {"may_delete": self.request.services.account_deletions.is_allowed(self.subject)}

    def submit(self, form: Form) -> Response:
        """The file; the export is audited before it is sent."""
        subject, request = self.subject, self.request
        request.services.account_recovery.record_export(subject)
        further = {name: provide(request, subject) for name, provide in self.renderer.account_data.items()}
        return json_file_response(
            request, "account.json", lambda services: export_personal_data(services, subject, further)
        )
