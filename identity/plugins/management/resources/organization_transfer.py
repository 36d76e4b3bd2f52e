"""Transfer: export an organization as one JSON document, and import one as a new organization."""

from typing import Annotated, Any, Literal

from pydantic import Field
from pyramid.response import Response

from identity.domain.instance import Instance
from identity.domain.organizations import Organization
from identity.http import route_contexts
from identity.http.large_documents import organization_export_response
from identity.plugins.management.operation import EmptyCommand, Operation, OperationCall
from identity.plugins.management.representation import Representation
from identity.plugins.management.resources.organizations import OrganizationRepresentation
from identity.services.commands import Command
from identity.services.commands.desired_state import OrganizationDocument
from identity.services.organization_transfer import EXPORT_PERMISSION, OrganizationTransfer


class OrganizationExportRepresentation(Representation):
    """An organization with everything in it, except passwords, private keys and other secrets."""

    format: Literal["identity-organization"]
    version: Literal[1]
    instance: str
    organization: Annotated[dict[str, Any], Field(description="A `DescribedOrganization`, as an import takes it.")]


class ImportOptions(Command):
    """How a document becomes an organization."""

    keep_ids: Literal["true", "false"] | None = None


_PRESERVE_IDS_VALUES = {"true": True, "false": False, None: None}


def _export_organization(call: OperationCall[Organization], _: EmptyCommand) -> Response:
    return organization_export_response(call.request, call.entity.id, principal=call.principal)


def _import_organization(call: OperationCall[Instance], document: OrganizationDocument) -> OrganizationRepresentation:
    keep_ids = _PRESERVE_IDS_VALUES[call.filters_as(ImportOptions).keep_ids]
    return OrganizationRepresentation.from_value(
        OrganizationTransfer(call.services).import_document(document, principal=call.principal, keep_ids=keep_ids)
    )


OPERATIONS = (
    Operation(
        name="export_organization",
        method="POST",
        path="/organizations/{organization}/export",
        summary="Exports an organization as one document.",
        description="The caller needs to be able to read everything in it. The audit trail records the "
        "export. The response is streamed: changes made in the meantime are not in it, and a "
        "truncated one is not valid JSON.",
        permission=EXPORT_PERMISSION,
        context_factory=route_contexts.organization_context,
        handler=_export_organization,
        representation=OrganizationExportRepresentation,
        is_streamed=True,
    ),
    Operation(
        name="import_organization",
        method="POST",
        path="/organizations/import",
        summary="Creates a new organization from an exported document, completely or not at all.",
        description="People are imported without passwords, and applications without secrets. With "
        "`keep_ids` everything keeps the ids of the document, otherwise it gets new ones; by "
        "default ids are kept if the document comes from this instance. `fields` names places "
        "in the document, such as `organization.projects[0].name`.",
        permission="organization.create",
        context_factory=route_contexts.instance_context,
        handler=_import_organization,
        command=OrganizationDocument,
        accepts_stream=True,
        filters=ImportOptions,
        representation=OrganizationRepresentation,
        location="/organizations/{id}",
    ),
)
