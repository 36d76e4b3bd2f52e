"""Who runs a provider, by what the provider does not say itself: its name is its managers' to choose."""

from urllib.parse import urlsplit

from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.words import Message, say
from identity.services.bundle import Services


def run_by(provider: UpstreamProvider, services: Services) -> Message:
    """The organization whose provider it is, by its domain too, and the host at which people sign in."""
    host = urlsplit(provider.known_as).hostname or ""
    if provider.instance_managed:
        return say("The instance manages this provider. You sign in at {host}.", host=host)
    organization = services.organizations.get(provider.organization_id)
    return say(
        "{organization} ({domain}) manages this provider. You sign in at {host}.",
        organization=organization.name,
        domain=organization.primary_domain,
        host=host,
    )
