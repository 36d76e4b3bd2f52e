"""ProviderRegistry: what the plugin shares between the requests of a process."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from pyramid.request import Request
from pyramid.response import Response

from identity.api.crypto import OutboundHttpClient, SignatureAlgorithm
from identity.api.entities import UpstreamProvider
from identity.api.pages import see_other
from identity.api.plugins import Settings
from identity.api.services import RecordNamespace, RecordService, Services
from identity.plugins.upstream.http_client import (
    TIMEOUT_SECONDS,
    HttpTransport,
    ProviderHttpClient,
    ProviderUnreachable,
)
from identity.plugins.upstream.provider_checks import ProviderCheck, check_provider
from identity.plugins.upstream.provider_clients import ProviderClient, UpstreamClientCredentials, create_provider_client
from identity.plugins.upstream.provider_metadata import KeySets, ProviderMetadataCache


class ProviderRegistry:
    """Cached metadata, and the HTTP client."""

    def __init__(
        self,
        settings: Settings,
        name_space: RecordNamespace,
        key_sets: KeySets,
        http_transport: HttpTransport | None = None,
    ) -> None:
        self.name_space = name_space
        self.known = ProviderMetadataCache(key_sets)
        networks = OutboundHttpClient.parse_networks(settings.allowed_networks)
        self._http_client = ProviderHttpClient(
            http_transport or OutboundHttpClient(networks=networks, seconds=TIMEOUT_SECONDS, bounds_name_lookups=True)
        )

    @contextmanager
    def provider_client(self, provider: UpstreamProvider) -> Iterator[ProviderClient]:
        """A client for the requests of one sign-in. Raises ProviderUnreachable."""
        with self._http_client.open_session(provider) as asking:
            yield create_provider_client(provider, self.known, asking)

    def check(
        self, provider: UpstreamProvider, credentials: UpstreamClientCredentials, redirect_uri: str, now: datetime
    ) -> tuple[ProviderCheck, ...]:
        """What works at the provider and what does not, asked now."""
        try:
            with self._http_client.open_session(provider) as asking:
                return check_provider(provider, self.known, asking, credentials, redirect_uri, now)
        except ProviderUnreachable as problem:
            return (ProviderCheck.unreachable(problem),)


def get_provider_registry(request: Request) -> ProviderRegistry:
    registry: ProviderRegistry = request.registry.upstream
    return registry


def plugin_records(request: Request) -> RecordService:
    """The plugin's records in the current transaction."""
    records: RecordService = request.services.record_service(get_provider_registry(request).name_space)
    return records


def redirect_off_site(request: Request, address: str) -> Response:
    """303 to a provider, which must not learn the URL of the sign-in."""
    response = see_other(request, "/")
    response.headers.update({"Location": address, "Referrer-Policy": "no-referrer"})
    return response


def load_client_credentials(provider: UpstreamProvider, services: Services) -> UpstreamClientCredentials:
    """The service's credentials at the provider; load them before its requests, which must not read the database."""
    key_id, key = services.signing_keys.current_signing_key(SignatureAlgorithm.RS256)
    return UpstreamClientCredentials(
        client_secret=services.upstream_providers.open_secret(provider), key_id=key_id, signing_key=key
    )
