"""Who operates a provider, from data that its managers cannot choose freely, unlike its name."""

from urllib.parse import urlsplit

from identity.api.entities import UpstreamProvider
from identity.api.pages import gettext_lazy
from identity.api.services import Services


def describe_provider_operator(provider: UpstreamProvider, services: Services) -> str:
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
