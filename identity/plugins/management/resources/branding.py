"""Branding: how the pages of a sign-in and mails look for an organization or an application, and what they say."""

from typing import Any

from identity.domain import branding
from identity.domain.applications import Application
from identity.http import route_contexts
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands.branding import ChangeBranding


@representation_fields(branding.Branding)
class BrandingRepresentation(Representation):
    """How pages and mails look, and what they say. Empty members are inherited from the organization, or else from the
    service.

    Texts are by language. The logo is the sanitized image in base64. The version is that of the organization or
    application.
    """

    version: int


def _represent(call: OperationCall, _branding: Any = None) -> BrandingRepresentation:
    """Its version is that of the owner, which a change increments."""
    services, brandings = call.services, call.services.branding
    owners = services.applications if isinstance(call.entity, Application) else services.organizations
    owner = owners.get(call.entity.id)
    return BrandingRepresentation.from_value(
        brandings.own_branding(owner), **brandings.own_logos_base64(owner), version=owner.version
    )


def _change(call: OperationCall) -> BrandingRepresentation:
    call.services.branding.change(
        call.entity, call.command, principal=call.principal, expected_version=call.expected_version
    )
    return _represent(call)


def _branding_resource(owner_kind: str, target: Any) -> ApiResource:
    return ApiResource(
        kind=f"{owner_kind}_branding",
        representation=BrandingRepresentation,
        path=f"/{owner_kind}s/{{{owner_kind}}}/branding",
        context_factory=target,
        permission_subject=owner_kind,
    )


_ORGANIZATION_BRANDING = _branding_resource("organization", route_contexts.organization_context)
_APPLICATION_BRANDING = _branding_resource("application", route_contexts.application_context)

_CHANGE_DESCRIPTION = (
    "What is given empty is taken back. A colour that is hard to read is refused, with the nearest that is not. The"
    " logo is a PNG, WebP or SVG picture in base64, of which what is harmless is kept; a request has at most 64 KiB."
)

OPERATIONS = (
    _ORGANIZATION_BRANDING.get_operation("Shows how pages and mails look for an organization.", _represent),
    _ORGANIZATION_BRANDING.action_operation(
        "change",
        "PATCH",
        "Changes how pages and mails look for an organization, and what they say.",
        _change,
        command=ChangeBranding,
        at="",
        description=_CHANGE_DESCRIPTION,
    ),
    _APPLICATION_BRANDING.get_operation("Shows how pages and mails look for an application.", _represent),
    _APPLICATION_BRANDING.action_operation(
        "change",
        "PATCH",
        "Changes how pages and mails look for an application, and what they say.",
        _change,
        command=ChangeBranding,
        at="",
        description=_CHANGE_DESCRIPTION + " What is empty is the organization's.",
    ),
)
