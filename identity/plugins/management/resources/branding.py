"""Branding: how the pages of a sign-in and mails look for an organization or an application, and what they say."""

from typing import Any

from identity.domain import branding
from identity.domain.applications import Application
from identity.http import targets
from identity.plugins.management.operation import Call
from identity.plugins.management.representation import Representation, showing
from identity.plugins.management.resource import Resource
from identity.services.commands.branding import ChangeBranding


@showing(branding.Branding)
class Branding(Representation):
    """How pages and mails look, and what they say. What is empty is the organization's, or else the service's.

    Texts stand by language. The logo is the picture in base64, as it was made harmless. The version is that of the
    organization or application.
    """

    version: int


def _shown(call: Call, _branding: Any = None) -> Branding:
    """What it is now. A change makes another version of its owner."""
    services, brandings = call.services, call.services.branding
    owners = services.applications if isinstance(call.value, Application) else services.organizations
    owner = owners.get(call.value.id)
    return Branding.of(brandings.of(owner), **brandings.logo_texts(owner), version=owner.version)


def _changed(call: Call) -> Branding:
    call.services.branding.change(call.value, call.command, by=call.by, expected_version=call.expected_version)
    return _shown(call)


def _resource(of: str, target: Any) -> Resource:
    return Resource(
        kind=f"{of}_branding",
        answers=Branding,
        path=f"/{of}s/{{{of}}}/branding",
        target=target,
        of=of,
    )


_OF_ORGANIZATIONS = _resource("organization", targets.organization)
_OF_APPLICATIONS = _resource("application", targets.application)

_WHAT = (
    "What is given empty is taken back. A colour that is hard to read is refused, with the nearest that is not. The"
    " logo is a PNG, WebP or SVG picture in base64, of which what is harmless is kept; a request has at most 64 KiB."
)

OPERATIONS = (
    _OF_ORGANIZATIONS.shows("Shows how pages and mails look for an organization.", _shown),
    _OF_ORGANIZATIONS.does(
        "change",
        "PATCH",
        "Changes how pages and mails look for an organization, and what they say.",
        _changed,
        command=ChangeBranding,
        at="",
        description=_WHAT,
    ),
    _OF_APPLICATIONS.shows("Shows how pages and mails look for an application.", _shown),
    _OF_APPLICATIONS.does(
        "change",
        "PATCH",
        "Changes how pages and mails look for an application, and what they say.",
        _changed,
        command=ChangeBranding,
        at="",
        description=_WHAT + " What is empty is the organization's.",
    ),
)
