"""Public documents that clients may cache: bytes built once, with an ETag."""

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
        """The document, or 304 if If-None-Match shows that the client has it (RFC 9110 §13.1.2)."""
        if known is not None and (known.strip() == "*" or self.etag in known):
            return self.not_modified_response
        return self.full_response


@dataclass(frozen=True, slots=True)
class CachedDocumentSources:
    """What documents are built from, cached in the process."""

    protocol: "ProtocolRegistry"
    ring: KeyRing


#: Finds the document that this process built before if it is still current; never reads the storage.
CachedDocumentFinder = Callable[[CachedDocumentSources, datetime], CacheableDocument | None]
