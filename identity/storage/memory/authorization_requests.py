"""Authorization requests that wait for their user, in memory."""

from dataclasses import replace
from datetime import datetime

from identity.domain.sessions import PendingAuthorization
from identity.storage.errors import AlreadyUsed, Stale
from identity.storage.memory.entities import MemoryStore, update
from identity.storage.stores.authorization_requests import AuthorizationRequestStore


class MemoryAuthorizationRequestStore(MemoryStore, AuthorizationRequestStore):
    """Rows by id."""

    def add(self, pending: PendingAuthorization) -> None:
        self._tables.authorization_requests.insert({pending.id: _own(pending)})

    def find(self, request_id: str) -> PendingAuthorization | None:
        return self._tables.authorization_requests.find(request_id)

    def update(self, pending: PendingAuthorization) -> None:
        if self._tables.authorization_requests.get(pending.id).finished_at is not None:
            raise Stale(pending.id)
        update(self._tables.authorization_requests, _own(pending))

    def begin_anew(self, user_id: str, *, but: str | None = None) -> int:
        table = self._tables.authorization_requests
        proved = [one for one in table if one.user_id == user_id and one.finished_at is None and one.id != but]
        for one in proved:
            table.put(one.id, replace(one.begun_anew(), version=one.version + 1))
        return len(proved)

    def finish(self, request_id: str, at: datetime, *, version: int) -> PendingAuthorization:
        pending = self._tables.authorization_requests.get(request_id)
        if pending.finished_at is not None:
            raise AlreadyUsed(pending)
        if pending.version != version:
            raise Stale(request_id)
        self._tables.authorization_requests.put(request_id, replace(pending, finished_at=at))
        return pending


def _own(pending: PendingAuthorization) -> PendingAuthorization:
    """The same with parameters of its own: the caller may go on changing what it gave."""
    return replace(pending, parameters=dict(pending.parameters))
