"""Pending authorization requests, in memory."""

from dataclasses import replace
from datetime import datetime

from identity.domain.sessions import PendingAuthorization
from identity.storage.errors import AlreadyUsed, StaleRow
from identity.storage.memory.entity_store import MemoryStore, update_versioned
from identity.storage.memory.users import organization_user_ids
from identity.storage.stores.authorization_requests import AuthorizationRequestStore


class MemoryAuthorizationRequestStore(MemoryStore, AuthorizationRequestStore):
    def add(self, pending: PendingAuthorization) -> None:
        self._tables.authorization_requests.insert({pending.id: _copy_parameters(pending)})

    def find(self, request_id: str) -> PendingAuthorization | None:
        return self._tables.authorization_requests.find(request_id)

    def update(self, pending: PendingAuthorization) -> None:
        if self._tables.authorization_requests.get(pending.id).finished_at is not None:
            raise StaleRow(pending.id)
        update_versioned(self._tables.authorization_requests, _copy_parameters(pending))

    def reset_for_user(self, user_id: str, *, except_id: str | None = None) -> int:
        table = self._tables.authorization_requests
        proved = [row for row in table if row.user_id == user_id and row.finished_at is None and row.id != except_id]
        for pending in proved:
            table.replace_unchecked(pending.id, replace(pending.restarted(), version=pending.version + 1))
        return len(proved)

    def reset_for_organization(self, organization_id: str, *, except_user_ids: frozenset[str] = frozenset()) -> int:
        users = organization_user_ids(self._tables, organization_id, except_user_ids)
        return sum(self.reset_for_user(user_id) for user_id in users)

    def finish(self, request_id: str, finished_at: datetime, *, version: int) -> PendingAuthorization:
        pending = self._tables.authorization_requests.get(request_id)
        if pending.finished_at is not None:
            raise AlreadyUsed(pending)
        if pending.version != version:
            raise StaleRow(request_id)
        self._tables.authorization_requests.replace_unchecked(request_id, replace(pending, finished_at=finished_at))
        return pending


def _copy_parameters(pending: PendingAuthorization) -> PendingAuthorization:
    """A copy with parameters that the caller cannot change afterwards."""
    return replace(pending, parameters=dict(pending.parameters))
