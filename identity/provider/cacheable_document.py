"""Public documents that clients may cache: bytes made once, with an ETag."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from identity.provider.protocol_request import ProtocolResponse
from identity.services.signing_keys import KeyRing

if TYPE_CHECKING:
    from identity.provider.protocol_registry import ProtocolRegistry


@dataclass(frozen=True, slots=True)
class CacheableDocument:
    """A JSON document as bytes, ready to be served."""

    full_response: ProtocolResponse
    not_modified_response: ProtocolResponse
    etag: str

    @classmethod
    def from_bytes(
        cls, body: bytes, *, max_age: timedelta, content_type: str = "application/json"
    ) -> "CacheableDocument":
        """The document with the headers for caching (RFC 9111)."""
        etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        headers = {"Cache-Control": f"public, max-age={int(max_age.total_seconds())}", "ETag": etag}
        fresh = ProtocolResponse(200, body, content_type, headers)
        return cls(fresh, ProtocolResponse(304, b"", content_type, headers), etag)

    def response(self, known: str | None) -> ProtocolResponse:
        """The document, or 304 if the client has it already, as If-None-Match tells (RFC 9110 §13.1.2)."""
        if known is not None and (known.strip() == "*" or self.etag in known):
            return self.not_modified_response
        return self.full_response


@dataclass(frozen=True, slots=True)
class CachedDocumentSources:
    """What a process keeps and documents are made of."""

    protocol: "ProtocolRegistry"
    ring: KeyRing


#: The document that a process has made before, if that is what it would make now; asks no storage.
CachedDocumentFinder = Callable[[CachedDocumentSources, datetime], CacheableDocument | None]
