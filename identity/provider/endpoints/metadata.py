"""The discovery document (service description §4.1, OpenID Connect Discovery §4)."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from identity.provider.caching import Document, Keeping
from identity.provider.context import Context
from identity.provider.discovery import capabilities, complete
from identity.provider.endpoint import Endpoint, Host
from identity.provider.protocol import Protocol
from identity.provider.request import ProtocolRequest, ProtocolResponse
from identity.settings import Settings


def members(protocol: Protocol, settings: Settings) -> Mapping[str, Any]:
    """What the document says, plugins' members among them."""
    addresses = {Host.ISSUER: settings.issuer_url, Host.BASE: settings.base_url, Host.LOGIN: settings.login_url}
    endpoints = {one.advertised_as: addresses[one.host] + one.path for one in protocol.endpoints if one.advertised_as}
    return complete({"issuer": settings.issuer_url, **endpoints, **capabilities(protocol, settings)}, protocol)


def document(protocol: Protocol, settings: Settings) -> Document:
    """The document; built once per process, because nothing in it depends on the request."""
    made: Document | None = protocol.documents.get("metadata")
    if made is None:
        text = json.dumps(members(protocol, settings))
        made = protocol.documents["metadata"] = Document.of(text.encode(), max_age=settings.jwks_max_age)
    return made


def handle(request: ProtocolRequest, context: Context) -> ProtocolResponse:
    """The document, or 304 if the client has it already."""
    return document(context.protocol, context.settings).answer(request.if_none_match)


def kept(keeping: Keeping, _: datetime) -> Document | None:
    """The document, once it was made: plugins have their say in it."""
    return keeping.protocol.documents.get("metadata")


ENDPOINT = Endpoint(
    name="metadata",
    path="/.well-known/openid-configuration",
    host=Host.ISSUER,
    methods=("GET",),
    advertised_as=None,
    writes=False,
    cross_origin=True,
    asks_storage=False,
    handle=handle,
    kept=kept,
)
