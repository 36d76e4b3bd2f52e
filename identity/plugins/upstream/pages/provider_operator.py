"""Who operates a provider, from data that its managers cannot choose freely, unlike its name."""

from urllib.parse import urlsplit

from identity.domain.messages import Message, gettext_lazy
from identity.domain.upstream_providers import UpstreamProvider
from identity.services.container import Services


def describe_provider_operator(provider: UpstreamProvider, services: Services) -> Message:
    """The provider's organization with its domain, and the host of the sign-in."""
    host = urlsplit(provider.effective_issuer).hostname or ""
    if provider.instance_managed:
        return gettext_lazy("The instance manages this provider. You sign in at {host}.", host=host)
    organization = services.organizations.get(provider.organization_id)
    return gettext_lazy(
        "{organization} ({domain}) manages this provider. You sign in at {host}.",
        organization=organization.name,
        domain=organization.primary_domain,
        host=host,
    )
