"""The published signing keys (service description §4.8, RFC 7517 §5)."""

import json
from datetime import datetime

from identity.provider.cacheable_document import CacheableDocument, CachedDocumentSources
from identity.provider.context import Context
from identity.provider.endpoint import Endpoint, EndpointHost
from identity.provider.protocol_registry import ProtocolRegistry
from identity.provider.protocol_request import ProtocolRequest, ProtocolResponse
from identity.services.signing_keys import Published


def handle(request: ProtocolRequest, context: Context) -> ProtocolResponse:
    """Announced, active and retired public keys; never a private member, never an empty set. The serialized document is
    cached as long as the same keys are published."""
    published = context.services.signing_keys.published_keys()
    document = _cached_key_set(context.protocol, published)
    if document is None:
        members = {"keys": [public.to_jwk(key.id) for key, public in published]}
        document = CacheableDocument.from_bytes(json.dumps(members).encode(), max_age=context.settings.jwks_max_age)
        context.protocol.documents["keys"] = published, document
    return document.response(request.if_none_match)


def find_cached_document(keeping: CachedDocumentSources, now: datetime) -> CacheableDocument | None:
    """The cached document while the key list need not be read again."""
    schedule = keeping.ring.fresh(now)
    return None if schedule is None else _cached_key_set(keeping.protocol, keeping.ring.published(schedule, now))


def _cached_key_set(protocol: ProtocolRegistry, published: Published) -> CacheableDocument | None:
    """The last document if it was built from just these keys."""
    keys, document = protocol.documents.get("keys", ((), None))
    return document if keys == published else None


ENDPOINT = Endpoint(
    name="keys",
    path="/oauth/v2/keys",
    host=EndpointHost.BASE,
    methods=("GET",),
    discovery_member="jwks_uri",
    writes=False,
    allows_cors=True,
    handle=handle,
    cached_document=find_cached_document,
)
