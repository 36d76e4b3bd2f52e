"""The discovery document (service description §4.1, OpenID Connect Discovery §4)."""

import json

from identity.provider.caching import Document
from identity.provider.discovery import complete
from identity.provider.endpoint import Endpoint, Host
from identity.provider.oidc import IdentityProvider
from identity.provider.protocol import Protocol
from identity.provider.request import Context, ProtocolRequest, ProtocolResponse
from identity.settings import Settings


def document(provider: IdentityProvider, protocol: Protocol, settings: Settings) -> Document:
    """The document; built once per process, because nothing in it depends on the request."""
    made: Document | None = provider.cached.get("metadata")
    if made is None:
        members = complete(provider.provider_information(), protocol)
        made = Document.of(json.dumps(members).encode(), max_age=settings.jwks_max_age)
        provider.cached["metadata"] = made
    return made


def handle(request: ProtocolRequest, context: Context) -> ProtocolResponse:
    """The document, or 304 if the client has it already."""
    return document(context.provider, context.protocol, context.settings).answer(request)


ENDPOINT = Endpoint(
    name="metadata",
    path="/.well-known/openid-configuration",
    host=Host.ISSUER,
    methods=("GET",),
    advertised_as=None,
    writes=False,
    cross_origin=True,
    handle=handle,
)
