"""Idempotency: a request that is sent twice is answered twice and done once."""

import logging
from collections.abc import Set
from dataclasses import dataclass, replace
from datetime import timedelta

from identity.cached_property import cached_property
from identity.crypto.sealing import Sealer, UnsealingError
from identity.crypto.secrets import token_digest
from identity.domain.errors import Conflict
from identity.domain.records import CORE_NAMESPACE, Record
from identity.services.base import Service, TransactionState

log = logging.getLogger(__name__)

_KEPT_FOR = timedelta(hours=24)
#: The kind of its records.
RECORD_KIND = "idempotency key"


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """What was answered to the first request with the key: HTTP status and body."""

    status: int
    body: bytes

    def __repr__(self) -> str:
        return f"Kept(status={self.status!r})"


class IdempotencyService(Service):
    """Keys belong to whoever uses them; an answer is kept sealed. What is shown once must not be given to keep.

    Both live in the transaction of what they guard: what is aborted can be tried again under the same key.
    """

    def __init__(self, state: TransactionState, sealer: Sealer) -> None:
        super().__init__(state)
        self._sealer = sealer

    #: The record of the request that began last. A transaction that follows in the same request takes it over.
    claimed_record: Record | None = None
    #: The keys that earlier runs of this request have committed, so that it does not conflict with itself.
    own_keys: Set[bytes] = frozenset()

    @cached_property
    def claimed_keys(self) -> set[bytes]:
        """The digests of all keys that were taken in this transaction."""
        return set()

    def claim_key(self, principal_id: str, key: str, request: bytes) -> StoredResponse | None:
        """Take the key for this request, whose method, address and body are ``request``.

        None if it is the first one with the key: then ``store_response`` its answer. The kept answer if the same
        request had one within 24 hours. Raises Conflict if the key came with another request, or its first one has no
        answer.
        """
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
        """Keep the answer to the request that began last, in its transaction or one that goes on after it.

        Without such a request nothing is kept.
        """
        if self.claimed_record is not None:
            sealed = self._sealer.seal(
                b"%d\n%b" % (status, body), associated_data=sealing_context(self.claimed_record.key)
            )
            self.claimed_record = replace(self.claimed_record, sealed=sealed, version=self.claimed_record.version + 1)
            self._storage.records.replace(self.claimed_record)

    def claim_token(self, principal_id: str, token: str) -> bool:
        """True the first time that the principal shows this word, False for 24 hours afterwards."""
        record = self._record(f"once\n{principal_id}\n{token}", {})
        return self._claim(record)[1]

    def _claim(self, record: Record) -> tuple[Record, bool]:
        """The record that holds the key, and True if the key is this request's."""
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
    """With what the answer under this key is sealed."""
    return f"idempotency key {key.hex()}"
