"""The published signing keys (service description §4.8, RFC 7517 §5)."""

import json
from datetime import datetime

from identity.provider.caching import Document, Keeping
from identity.provider.context import Context
from identity.provider.endpoint import Endpoint, Host
from identity.provider.protocol import Protocol
from identity.provider.request import ProtocolRequest, ProtocolResponse
from identity.services.signing_keys import Published


def handle(request: ProtocolRequest, context: Context) -> ProtocolResponse:
    """Waiting, active and retired public keys; never a private member, never an empty set.

    The bytes are kept for as long as the same keys are published.
    """
    published = context.services.signing_keys.published()
    document = _made(context.protocol, published)
    if document is None:
        members = {"keys": [public.to_jwk(key.id, key.algorithm) for key, public in published]}
        document = Document.of(json.dumps(members).encode(), max_age=context.settings.jwks_max_age)
        context.protocol.documents["keys"] = published, document
    return document.answer(request.if_none_match)


def kept(keeping: Keeping, now: datetime) -> Document | None:
    """The document, while the key list need not be read again."""
    schedule = keeping.ring.fresh(now)
    return None if schedule is None else _made(keeping.protocol, keeping.ring.published(schedule, now))


def _made(protocol: Protocol, published: Published) -> Document | None:
    """The document of just these keys, if it was the last one that was made."""
    keys, document = protocol.documents.get("keys", ((), None))
    return document if keys == published else None


ENDPOINT = Endpoint(
    name="keys",
    path="/oauth/v2/keys",
    host=Host.BASE,
    methods=("GET",),
    advertised_as="jwks_uri",
    writes=False,
    cross_origin=True,
    handle=handle,
    kept=kept,
)
