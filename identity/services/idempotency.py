"""Idempotency: a request that is sent twice is answered twice and done once."""

import logging
from dataclasses import dataclass
from datetime import timedelta

from identity.crypto.sealing import Sealer, Unsealable
from identity.crypto.secrets import digest
from identity.domain.errors import Conflict
from identity.domain.idempotency import IdempotencyRecord
from identity.services.changes import UseCases

log = logging.getLogger(__name__)

_KEPT_FOR = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Kept:
    """What was answered to the first request with the key: HTTP status and body."""

    status: int
    body: bytes

    def __repr__(self) -> str:
        return f"Kept(status={self.status!r})"


class Idempotency(UseCases):
    """Keys belong to whoever uses them; an answer is kept sealed. What is shown once must not be given to keep.

    Both live in the transaction of what they guard: what is aborted can be tried again under the same key.
    """

    _sealer: Sealer
    #: The key of the request that began last. Whoever goes on in another transaction takes it along.
    claimed: bytes | None = None

    def begin(self, principal_id: str, key: str, request: bytes) -> Kept | None:
        """Take the key for this request, whose method, address and body are ``request``.

        None if it is the first one with the key: then ``keep`` its answer. The kept answer if the same request had one
        within 24 hours. Raises Conflict if the key came with another request, or its first one has no answer.
        """
        name = digest(f"answer\n{principal_id}\n{key}")
        record = self._record(name, request)
        stored = self._storage.idempotency.claim(record)
        if stored is None:
            self.claimed = name
            return None
        if stored.request != record.request:
            raise Conflict("This idempotency key came with another request. Choose a new key for each request.")
        try:
            return Kept(stored.status, self._sealer.open(stored.sealed, associated=_place(name)))
        except Unsealable as damage:
            if stored.sealed:
                log.error("a kept answer cannot be opened: %s", damage)
            raise Conflict("The answer to this request was not kept. Look whether it was done.") from None

    def keep(self, status: int, body: bytes) -> None:
        """Keep the answer to the request that began last, in its transaction or one that goes on after it.

        Without such a request nothing is kept.
        """
        if self.claimed is not None:
            sealed = self._sealer.seal(body, associated=_place(self.claimed))
            self._storage.idempotency.complete(self.claimed, status, sealed)

    def use_once(self, principal_id: str, once: str) -> bool:
        """True the first time that the principal shows this word, False for 24 hours afterwards."""
        return self._storage.idempotency.claim(self._record(digest(f"once\n{principal_id}\n{once}"), b"")) is None

    def _record(self, name: bytes, request: bytes) -> IdempotencyRecord:
        asked = digest(request.decode("latin-1"))
        return IdempotencyRecord(key=name, request=asked, created_at=self._now, expires_at=self._now + _KEPT_FOR)


def _place(name: bytes) -> str:
    return f"idempotency key {name.hex()}"
