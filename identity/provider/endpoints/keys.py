"""The published signing keys (service description §4.8, RFC 7517 §5)."""

import json

from identity.provider.caching import Document
from identity.provider.context import Context
from identity.provider.endpoint import Endpoint, Host
from identity.provider.request import ProtocolRequest, ProtocolResponse


def handle(request: ProtocolRequest, context: Context) -> ProtocolResponse:
    """Waiting, active and retired public keys; never a private member, never an empty set.

    The bytes are kept for as long as the same keys are published.
    """
    published = context.services.signing_keys.published()
    kept = context.protocol.documents.get("keys")
    if kept is None or kept[0] != published:
        members = {"keys": [public.to_jwk(key.id, key.algorithm) for key, public in published]}
        kept = published, Document.of(json.dumps(members).encode(), max_age=context.settings.jwks_max_age)
        context.protocol.documents["keys"] = kept
    document: Document = kept[1]
    return document.answer(request)


ENDPOINT = Endpoint(
    name="keys",
    path="/oauth/v2/keys",
    host=Host.BASE,
    methods=("GET",),
    advertised_as="jwks_uri",
    writes=False,
    cross_origin=True,
    handle=handle,
)
