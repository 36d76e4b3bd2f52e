"""Organization transfer: export as a document, and import as a new organization."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy as _
from identity.domain.organizations import Organization
from identity.http import route_contexts
from identity.http.error_views import MalformedRequest
from identity.http.json_stream import parse_json_stream
from identity.http.large_documents import organization_export_response
from identity.pages.forms import Form
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.resource_types import (
    ORGANIZATION,
    ORGANIZATIONS_BREADCRUMBS,
    ORGANIZATIONS_PATH,
    ResourcePage,
)
from identity.plugins.console.routes import ConsoleRoute
from identity.plugins.console.upload_page import UploadFormPage
from identity.services.commands.desired_state import OrganizationDocument
from identity.services.commands.documents import FURTHER_PROBLEMS_KEY
from identity.services.organization_transfer import (
    EXPORT_PERMISSION,
    PRESERVE_IDS_PERMISSION,
    OrganizationTransfer,
    StreamedOrganizationImport,
)

_DOCUMENT_FIELD, _PRESERVE_IDS_FIELD = "document", "keep_ids"


class ExportOrganizationPage(ResourcePage[Organization], ConsoleFormPage):
    """Describes the document and serves it as a file."""

    template = "console/organization_export.html"

    title = _("Export {name}")

    def submit(self, form: Form) -> Response:
        """The file. Raises Denied if the caller may not read all of its content."""
        return organization_export_response(self.request, self.entity.id, principal=self.principal)


class ImportOrganizationPage(UploadFormPage):
    """Creates an organization from a document and redirects to its page."""

    template = "console/organization_import.html"
    section = "organizations"
    is_instance_page = True
    title = _("Import an organization")
    breadcrumbs = ORGANIZATIONS_BREADCRUMBS
    is_creation = True
    fields = (_DOCUMENT_FIELD, _PRESERVE_IDS_FIELD)
    document_field = _DOCUMENT_FIELD
    file_field = _DOCUMENT_FIELD

    def template_variables(self) -> Mapping[str, object]:
        return {
            **super().template_variables(),
            "may_keep_ids": self.has_permission(PRESERVE_IDS_PERMISSION),
            "largest": self._max_bytes,
        }

    def submit(self, form: Form) -> Response:
        try:
            with StreamedOrganizationImport() as incoming:
                document = self._document(incoming)
                self.redeem_submission_id(form)
                organization = OrganizationTransfer(self.services).import_document(
                    document, principal=self.principal, keep_ids=bool(form.text(_PRESERVE_IDS_FIELD))
                )
        except Invalid as refused:
            raise Invalid(self._errors_with_paths(refused.fields)) from None
        return self.redirect(self.path_with_flash(f"{ORGANIZATIONS_PATH}/{organization.id}"))

    @property
    def _max_bytes(self) -> int:
        limit: int = self.request.registry.application.settings.import_limit
        return limit

    @property
    def too_large_message(self) -> str:
        return _("The file is larger than {n} MiB.", n=self._max_bytes)

    def _document(self, incoming: StreamedOrganizationImport) -> OrganizationDocument:
        file = self.files.get(_DOCUMENT_FIELD)
        if file is None:
            raise Invalid({_DOCUMENT_FIELD: _("Choose the exported file.")})
        try:
            values = parse_json_stream(file, incoming.list_consumers)
        except MalformedRequest as problem:
            raise Invalid({_DOCUMENT_FIELD: problem.args[0]}) from None
        return incoming.document(values)

    def _errors_with_paths(self, problems: Mapping[str, str]) -> Mapping[str, str]:
        """Errors prefixed with their path in the document; errors of the text itself have none."""
        if _DOCUMENT_FIELD in problems:
            return problems
        t = self.translator.gettext
        more = {name: item for name, item in problems.items() if name == FURTHER_PROBLEMS_KEY}
        located = {path: item for path, item in problems.items() if path not in more}
        messages = {path: _("{place}: {problem}", place=path, problem=t(item)) for path, item in located.items()} | more
        return {_DOCUMENT_FIELD: _("Some places in the document need a correction."), **messages}


ROUTES = (
    ConsoleRoute(
        "/organizations/import", ImportOrganizationPage, "organization.create", route_contexts.instance_context
    ),
    ORGANIZATION.page_route("/export", ExportOrganizationPage, EXPORT_PERMISSION),
)
