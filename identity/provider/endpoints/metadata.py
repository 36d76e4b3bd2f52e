"""The discovery document (service description §4.1, OpenID Connect Discovery §4)."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from identity.provider.cacheable_document import CacheableDocument, CachedDocumentSources
from identity.provider.context import Context
from identity.provider.discovery import discovery_members, with_plugin_members
from identity.provider.endpoint import Endpoint, EndpointHost
from identity.provider.protocol_registry import ProtocolRegistry
from identity.provider.protocol_request import ProtocolRequest, ProtocolResponse
from identity.settings import Settings


def discovery_document_members(protocol: ProtocolRegistry, settings: Settings) -> Mapping[str, Any]:
    """Members of the discovery document, including those of plugins."""
    addresses = {
        EndpointHost.ISSUER: settings.issuer_url,
        EndpointHost.BASE: settings.base_url,
        EndpointHost.LOGIN: settings.login_url,
    }
    endpoints = {
        endpoint.discovery_member: addresses[endpoint.host] + endpoint.path
        for endpoint in protocol.endpoints
        if endpoint.discovery_member
    }
    return with_plugin_members(
        {"issuer": settings.issuer_url, **endpoints, **discovery_members(protocol, settings)}, protocol
    )


def cached_discovery_document(protocol: ProtocolRegistry, settings: Settings) -> CacheableDocument:
    """The document; built once per process, because nothing in it depends on the request."""
    cacheable_document: CacheableDocument | None = protocol.documents.get("metadata")
    if cacheable_document is None:
        text = json.dumps(discovery_document_members(protocol, settings))
        cacheable_document = protocol.documents["metadata"] = CacheableDocument.from_bytes(
            text.encode(), max_age=settings.jwks_max_age
        )
    return cacheable_document


def discovery_response(request: ProtocolRequest, context: Context) -> ProtocolResponse:
    """The discovery document, or 304 if the client has it."""
    return cached_discovery_document(context.protocol, context.settings).response(request.if_none_match)


def find_cached_document(keeping: CachedDocumentSources, _: datetime) -> CacheableDocument | None:
    """The document once it has been built; the first request asks the plugins."""
    return keeping.protocol.documents.get("metadata")


ENDPOINT = Endpoint(
    name="metadata",
    path="/.well-known/openid-configuration",
    host=EndpointHost.ISSUER,
    methods=("GET",),
    discovery_member=None,
    writes=False,
    allows_cors=True,
    uses_storage=False,
    handle=discovery_response,
    cached_document=find_cached_document,
)
