"""Branding: how the pages of a sign-in and mails look for an organization or an application, and what they say."""

from identity.domain.applications import Application
from identity.domain.branding import Branding
from identity.domain.organizations import Organization
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import APPLICATION, ORGANIZATION
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands.branding import ChangeBranding


@representation_fields(Branding)
class BrandingRepresentation(Representation):
    """How pages and mails look, and what they say. Empty members are inherited from the organization, or else from the
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


_APPLICATION_BRANDING = ApiResource[Branding](
    "application_branding", BrandingRepresentation, permission_subject="application"
)
_ORGANIZATION_BRANDING = ApiResource[Branding](
    "organization_branding", BrandingRepresentation, permission_subject="organization"
)

_CHANGE_DESCRIPTION = (
    "What is given empty is taken back. A colour that is hard to read is refused, with the nearest that is not. The"
    " logo is a PNG, WebP or SVG picture in base64, of which what is harmless is kept; a request has at most 64 KiB."
)

OPERATIONS = (
    _ORGANIZATION_BRANDING.get(
        ORGANIZATION / "branding", "Shows how pages and mails look for an organization.", _represent
    ),
    _ORGANIZATION_BRANDING.change(
        ORGANIZATION / "branding",
        "Changes how pages and mails look for an organization, and what they say.",
        ChangeBranding,
        _change,
        description=_CHANGE_DESCRIPTION,
    ),
    _APPLICATION_BRANDING.get(
        APPLICATION / "branding", "Shows how pages and mails look for an application.", _represent
    ),
    _APPLICATION_BRANDING.change(
        APPLICATION / "branding",
        "Changes how pages and mails look for an application, and what they say.",
        ChangeBranding,
        _change,
        description=_CHANGE_DESCRIPTION + " What is empty is the organization's.",
    ),
)
