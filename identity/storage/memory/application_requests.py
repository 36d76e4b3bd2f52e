"""The log of each application, in memory."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime

from identity.domain.application_requests import MAX_LOGGED_REQUESTS, ApplicationRequest
from identity.storage.memory.entity_store import MemoryStore
from identity.storage.stores.application_requests import ApplicationRequestStore


class MemoryApplicationRequestStore(MemoryStore, ApplicationRequestStore):
    """Requests by id."""

    def add(self, requests: Collection[ApplicationRequest]) -> None:
        table = self._tables.application_requests
        for request in requests:
            if request.application_id in self._tables.applications:
                user = self._tables.users.find(request.user_id)
                table.replace_unchecked(request.id, replace(request, user_id=None if user is None else user.id))
        for application_id in {request.application_id for request in requests}:
            logged = self.list_for_application(application_id)
            for is_refused in (True, False):
                same = [request for request in logged if bool(request.error) is is_refused]
                for request in same[MAX_LOGGED_REQUESTS:]:
                    table.delete(request.id)

    def list_for_application(self, application_id: str) -> tuple[ApplicationRequest, ...]:
        return _sort(item for item in self._tables.application_requests if item.application_id == application_id)

    def list_for_user(self, user_id: str) -> tuple[ApplicationRequest, ...]:
        return _sort(item for item in self._tables.application_requests if item.user_id == user_id)

    def delete_before(self, moment: datetime) -> int:
        return self._tables.application_requests.delete_where(lambda _, request: request.at < moment)


def _sort(requests: Iterable[ApplicationRequest]) -> tuple[ApplicationRequest, ...]:
    return tuple(sorted(requests, key=lambda request: (request.at, request.id), reverse=True))
