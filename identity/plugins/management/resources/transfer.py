"""Transfer: an organization as one JSON document, and such a document as a new organization."""

from typing import Annotated, Any, Literal

from pydantic import Field
from pyramid.response import Response

from identity.http import targets
from identity.http.documents import exported
from identity.plugins.management.operation import Call, Operation
from identity.plugins.management.representation import Representation
from identity.plugins.management.resources.organizations import Organization
from identity.services.commands import Command
from identity.services.commands.descriptions import OrganizationDocument
from identity.services.transfer import MAY_EXPORT, Transfer


class ExportedOrganization(Representation):
    """An organization with everything in it, but for passwords, private keys and other secrets."""

    format: Literal["identity-organization"]
    version: Literal[1]
    instance: str
    organization: Annotated[dict[str, Any], Field(description="A `DescribedOrganization`, as an import takes it.")]


class ImportOptions(Command):
    """How a document becomes an organization."""

    keep_ids: Literal["true", "false"] | None = None


_KEEP_IDS = {"true": True, "false": False}


def _export(call: Call) -> Response:
    return exported(call.request, call.value.id, by=call.by)


def _import(call: Call) -> Organization:
    keep_ids = _KEEP_IDS.get(call.filters.keep_ids)
    return Organization.of(Transfer(call.services).import_(call.command, by=call.by, keep_ids=keep_ids))


OPERATIONS = (
    Operation(
        name="export_organization",
        method="POST",
        path="/organizations/{organization}/export",
        summary="Exports an organization as one document.",
        description="Whoever exports may read all that is in it. The audit trail tells that it was done. The answer is"
        " made while it is sent: what changes meanwhile is not in it, and one that ends early is no JSON.",
        permission=MAY_EXPORT,
        target=targets.organization,
        handle=_export,
        answers=ExportedOrganization,
        streams=True,
    ),
    Operation(
        name="import_organization",
        method="POST",
        path="/organizations/import",
        summary="Makes a new organization of an exported document, or nothing.",
        description="People come without passwords and applications without secrets. With `keep_ids` everything has the"
        " ids of the document, without it new ones; where it is not given, ids are kept if the document comes from this"
        " very instance. `fields` names places in the document, such as `organization.projects[0].name`.",
        permission="organization.create",
        target=targets.instance,
        handle=_import,
        command=OrganizationDocument,
        large=True,
        filters=ImportOptions,
        answers=Organization,
        location="/organizations/{id}",
    ),
)
