"""Public keys of service users, in memory."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from identity.domain.service_user_keys import KeySummary, ServiceUserKey
from identity.domain.users import ServiceUser, Subject
from identity.storage.memory.entities import MemoryStore, expiring, page_newest_first
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.service_user_keys import ServiceUserKeyStore


class MemoryServiceUserKeyStore(MemoryStore, ServiceUserKeyStore):
    """Rows by id."""

    def add(self, key: ServiceUserKey) -> None:
        self._tables.service_user_keys.insert({key.id: key})

    def find(self, key_id: str, user_id: str) -> ServiceUserKey | None:
        key = self._tables.service_user_keys.find(key_id)
        return key if key is not None and key.user_id == user_id else None

    def find_signer(self, key_id: str, user_id: str) -> tuple[ServiceUserKey, Subject] | None:
        key, user = self.find(key_id, user_id), self._tables.users.find(user_id)
        if key is None or not isinstance(user, ServiceUser):
            return None
        return key, Subject(user, self._tables.organizations.get(user.organization_id))

    def touch(self, key_id: str, at: datetime) -> None:
        key = self._tables.service_user_keys.find(key_id)
        if key is not None:
            self._tables.service_user_keys.put(key_id, replace(key, last_used_at=at))

    def remove(self, key_id: str) -> None:
        self._tables.service_user_keys.delete(key_id)

    def page(self, user_id: str, request: PageRequest = FIRST_PAGE) -> Page[ServiceUserKey]:
        return page_newest_first((key for key in self._tables.service_user_keys if key.user_id == user_id), request)

    def summaries(self, user_ids: Collection[str], at: datetime) -> Mapping[str, KeySummary]:
        of_users: dict[str, list[ServiceUserKey]] = {}
        for key in self._tables.service_user_keys:
            if key.user_id in user_ids:
                of_users.setdefault(key.user_id, []).append(key)
        return {user_id: _summary_of(keys, at) for user_id, keys in of_users.items()}

    def expiring(
        self, after: datetime, until: datetime, limit: int, *, organization_id: str | None = None
    ) -> tuple[ServiceUserKey, ...]:
        return expiring(self._tables, self._tables.service_user_keys, after, until, limit, organization_id)


def _summary_of(keys: Sequence[ServiceUserKey], at: datetime) -> KeySummary:
    live = [key.expires_at for key in keys if key.live(at)]
    return KeySummary(
        live=len(live),
        next_expiry=min(live) if live else max(key.expires_at for key in keys),
        last_used_at=max((key.last_used_at for key in keys if key.last_used_at is not None), default=None),
    )
