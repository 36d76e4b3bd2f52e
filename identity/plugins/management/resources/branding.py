"""Branding: how sign-in pages and mails look for an organization or an application, and their texts."""

from collections.abc import Iterator
from typing import TypeVar

from identity.domain.applications import Application
from identity.domain.branding import Branding
from identity.domain.organizations import Organization
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import APPLICATION, ORGANIZATION
from identity.plugins.management.operation import EntityPath, Operation, OperationCall
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands.branding import ChangeBranding

OwnerT = TypeVar("OwnerT", Application, Organization)


@representation_fields(Branding)
class BrandingRepresentation(Representation):
    """How pages and mails look, and their texts. Empty members are inherited from the organization, or else from the
    service.

    Texts are by language. The logo is the sanitized image in base64. The version is that of the organization or
    application.
    """

    version: int


def _represent(call: OperationCall[Application] | OperationCall[Organization]) -> BrandingRepresentation:
    """Its version is that of the owner, which a change increments."""
    services, entity = call.services, call.entity
    owner: Application | Organization = (
        services.applications.get(entity.id)
        if isinstance(entity, Application)
        else services.organizations.get(entity.id)
    )
    return BrandingRepresentation.from_value(
        services.branding.own_branding(owner), **services.branding.own_logos_base64(owner), version=owner.version
    )


def _change(
    call: OperationCall[Application] | OperationCall[Organization], command: ChangeBranding
) -> BrandingRepresentation:
    call.services.branding.change(
        call.entity, command, principal=call.principal, expected_version=call.expected_version
    )
    return _represent(call)


_CHANGE_DESCRIPTION = (
    "An empty member is reset. A colour that is hard to read is refused, with the closest "
    "readable one. The logo is a PNG, WebP or SVG picture in base64, which is sanitized; "
    "a request has at most 64 KiB."
)


def _owner_operations(owner: str, name: str, at: EntityPath[OwnerT], description: str) -> Iterator[Operation]:
    branding = ApiResource[Branding](f"{owner}_branding", BrandingRepresentation, permission_subject=owner)
    yield branding.get(at / "branding", f"Shows how pages and mails look for {name}.", _represent)
    yield branding.change(
        at / "branding",
        f"Changes how pages and mails look for {name}, and their texts.",
        ChangeBranding,
        _change,
        description=description,
    )


OPERATIONS = (
    *_owner_operations("organization", "an organization", ORGANIZATION, _CHANGE_DESCRIPTION),
    *_owner_operations(
        "application",
        "an application",
        APPLICATION,
        _CHANGE_DESCRIPTION + " Empty members are inherited from the organization.",
    ),
)
