"""Leases: which node does a piece of background work."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from identity.clock import Clock
from identity.crypto.secrets import token_digest
from identity.domain.records import CORE_NAMESPACE, Record
from identity.services.container import Services
from identity.storage.backend import Storage
from identity.storage.errors import UnreadableRow


def acquire_lease(storage: Storage, name: str, *, starts_at: datetime, expires_at: datetime) -> bool:
    """Acquire the lease by one conditional write; False while another node holds it. Release it by acquiring it from
    its end until now."""
    lease = Record(
        plugin=CORE_NAMESPACE, kind="lease", key=token_digest(name), created_at=starts_at, expires_at=expires_at
    )
    try:
        return storage.records.add(lease, replacing_expired=True) is None
    except UnreadableRow:
        # Another node holds it, or acquires it at the same moment.
        return False


@dataclass(eq=False)
class Lease:
    """A long task that only one node runs at a time, with its lease renewed as the work goes on."""

    _name: str
    _span: timedelta
    _transaction: Callable[[], AbstractContextManager[Services]]
    _clock: Clock
    _until: datetime | None = field(default=None, init=False)

    def acquire(self) -> bool:
        """Acquire the lease; False while another node holds it."""
        return self._take(self._clock())

    def renew(self) -> bool:
        """Renew the lease once half of its time is over; False if it was lost or never acquired."""
        if self._until is None or self._until - self._clock() > self._span / 2:
            return self._until is not None
        # From the end of the current lease, so that no other node can have acquired it before.
        return self._take(self._until)

    def _take(self, at: datetime) -> bool:
        until = self._clock() + self._span
        with self._transaction() as services:
            self._until = until if acquire_lease(services.storage, self._name, starts_at=at, expires_at=until) else None
        return self._until is not None

    def release(self) -> None:
        """Let another node acquire it at once."""
        if self._until is not None:
            with self._transaction() as services:
                acquire_lease(services.storage, self._name, starts_at=self._until, expires_at=self._clock())
            self._until = None
