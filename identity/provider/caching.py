"""Public documents that clients may cache: bytes made once, with an ETag."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from identity.provider.request import ProtocolResponse
from identity.services.signing_keys import KeyRing

if TYPE_CHECKING:
    from identity.provider.protocol import Protocol


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON document as bytes, ready to be served."""

    fresh: ProtocolResponse
    unchanged: ProtocolResponse
    etag: str

    @classmethod
    def of(cls, body: bytes, *, max_age: timedelta, content_type: str = "application/json") -> "Document":
        """The document with the headers for caching (RFC 9111)."""
        etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        headers = {"Cache-Control": f"public, max-age={int(max_age.total_seconds())}", "ETag": etag}
        fresh = ProtocolResponse(200, body, content_type, headers)
        return cls(fresh, ProtocolResponse(304, b"", content_type, headers), etag)

    def answer(self, known: str | None) -> ProtocolResponse:
        """The document, or 304 if the client has it already, as If-None-Match tells (RFC 9110 §13.1.2)."""
        if known is not None and (known.strip() == "*" or self.etag in known):
            return self.unchanged
        return self.fresh


@dataclass(frozen=True, slots=True)
class Keeping:
    """What a process keeps and documents are made of."""

    protocol: "Protocol"
    ring: KeyRing


#: The document that a process has made before, if that is what it would make now; asks no storage.
Kept = Callable[[Keeping, datetime], Document | None]
