"""Idempotency: a request that is sent twice is executed once, and both get the same response."""

import logging
from collections.abc import Set
from dataclasses import dataclass, field, replace
from datetime import timedelta

from identity.crypto.sealing import UnsealingError
from identity.crypto.secrets import token_digest
from identity.domain.errors import Conflict
from identity.domain.records import CORE_NAMESPACE, Record
from identity.services.base import Service

log = logging.getLogger(__name__)

_KEPT_FOR = timedelta(hours=24)
RECORD_KIND = "idempotency key"


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """Status and body of the response to the first request with the key."""

    status: int
    body: bytes

    def __repr__(self) -> str:
        return f"Kept(status={self.status!r})"


@dataclass(eq=False, repr=False)
class IdempotencyService(Service):
    """Keys belong to their principal; responses are stored sealed. Never store a response with a secret that is shown
    once. Key and response are written in the transaction of the request: after an abort you can retry with the same
    key."""

    #: The record of the last claimed key. A later transaction of the same request takes it over.
    claimed_record: Record | None = field(default=None, init=False)
    #: The keys that earlier runs of this request have committed, so that it does not conflict with itself.
    own_keys: Set[bytes] = field(default=frozenset(), init=False)
    #: The digests of all keys claimed in this transaction.
    claimed_keys: set[bytes] = field(default_factory=set, init=False)

    def claim_key(self, principal_id: str, key: str, request: bytes) -> StoredResponse | None:
        """Claim the key for this request, whose method, path and body are ``request``. None for the first request with
        the key: then call ``store_response``. The stored response if the same request got one within 24 hours. Raises
        Conflict if the key came with another request, or the first one has no response."""
        record = self._record(
            f"answer\n{principal_id}\n{key}", {"request": token_digest(request.decode("latin-1")).hex()}
        )
        stored, is_own = self._claim(record)
        if is_own:
            self.claimed_record = stored
            return None
        if stored.value.get("request") != record.value["request"]:
            raise Conflict("This idempotency key came with another request. Choose a new key for each request.")
        try:
            status, _, body = self._sealer.open(stored.sealed, associated_data=sealing_context(record.key)).partition(
                b"\n"
            )
            return StoredResponse(int(status), body)
        except UnsealingError as damage:
            if stored.sealed:
                log.error("a kept answer cannot be opened: %s", damage)
            raise Conflict("The answer to this request was not kept. Look whether it was done.") from None

    def store_response(self, status: int, body: bytes) -> None:
        """Store the response for the last claimed key, in this transaction or a later one of the request. Without a
        claimed key nothing is stored."""
        if self.claimed_record is not None:
            sealed = self._sealer.seal(
                b"%d\n%b" % (status, body), associated_data=sealing_context(self.claimed_record.key)
            )
            self.claimed_record = replace(self.claimed_record, sealed=sealed, version=self.claimed_record.version + 1)
            self._storage.records.replace(self.claimed_record)

    def claim_token(self, principal_id: str, token: str) -> bool:
        """True the first time that the principal presents this token, False for 24 hours afterwards."""
        record = self._record(f"once\n{principal_id}\n{token}", {})
        return self._claim(record)[1]

    def _claim(self, record: Record) -> tuple[Record, bool]:
        """The record with the key, and True if this request claimed it."""
        holder = self._storage.records.add(record, replacing_expired=True)
        is_own = holder is None or record.key in self.own_keys
        if is_own:
            self.claimed_keys.add(record.key)
        return holder or record, is_own

    def _record(self, name: str, value: dict[str, str]) -> Record:
        expires_at = self._now + _KEPT_FOR
        key = token_digest(name)
        return Record(
            plugin=CORE_NAMESPACE, kind=RECORD_KIND, key=key, value=value, created_at=self._now, expires_at=expires_at
        )


def sealing_context(key: bytes) -> str:
    return f"idempotency key {key.hex()}"
