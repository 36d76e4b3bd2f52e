"""The discovery document (service description §4.1, OpenID Connect Discovery §4)."""

import json

from identity.provider.caching import Document
from identity.provider.discovery import complete
from identity.provider.endpoint import Endpoint, Host
from identity.provider.request import Context, ProtocolRequest, ProtocolResponse


def handle(request: ProtocolRequest, context: Context) -> ProtocolResponse:
    """The document; built once per process, because nothing in it depends on the request."""
    document = context.provider.cached.get("metadata")
    if document is None:
        members = complete(context.provider.provider_information(), context.protocol)
        document = Document.of(json.dumps(members).encode(), max_age=context.settings.jwks_max_age)
        context.provider.cached["metadata"] = document
    return document.answer(request)


ENDPOINT = Endpoint(
    name="metadata",
    path="/.well-known/openid-configuration",
    host=Host.ISSUER,
    methods=("GET",),
    advertised_as=None,
    writes=False,
    handle=handle,
)
