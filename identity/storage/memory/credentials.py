"""What service users prove who they are with, in memory."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.service_user_keys import KeySummary, ServiceUserKey
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.users import ServiceUser, Subject
from identity.storage.errors import Missing
from identity.storage.memory.entities import MemoryStore, oldest_first, page_newest_first, touch
from identity.storage.memory.tables import Table
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.credentials import Credential, CredentialStore, Expiring


class MemoryCredentialStore(MemoryStore, CredentialStore):
    """Rows by id, each kind in a table of its own."""

    def add(self, credential: ServiceUserKey | ServiceUserSecret | PersonalAccessToken) -> None:
        self._rows(type(credential)).insert({credential.id: credential})

    def find(self, kind: type[Credential], id: str, user_id: str) -> Credential | None:  # noqa: A002
        found: Credential | None = self._rows(kind).find(id)
        return found if found is not None and found.user_id == user_id else None

    def remove(self, kind: type[Credential], user_id: str, id: str) -> None:  # noqa: A002
        if self.find(kind, id, user_id) is None:
            raise Missing(id)
        self._rows(kind).delete(id)

    def touch(self, kind: type[Credential], uses: Mapping[str, datetime]) -> None:
        touch(self._rows(kind), uses)

    def page(self, kind: type[Credential], user_id: str, request: PageRequest = FIRST_PAGE) -> Page[Credential]:
        return page_newest_first((one for one in self._rows(kind) if one.user_id == user_id), request)

    def expiring(
        self,
        kind: type[Expiring],
        after: datetime,
        until: datetime,
        limit: int,
        *,
        organization_id: str | None = None,
    ) -> tuple[Expiring, ...]:
        users = self._tables.users
        found = [
            one
            for one in self._rows(kind)
            if after < one.expires_at <= until and organization_id in (None, users.get(one.user_id).organization_id)
        ]
        return tuple(sorted(found, key=lambda one: (one.expires_at, one.id))[:limit])

    def find_signer(self, key_id: str, user_id: str) -> tuple[ServiceUserKey, Subject] | None:
        key, user = self.find(ServiceUserKey, key_id, user_id), self._tables.users.find(user_id)
        if key is None or not isinstance(user, ServiceUser):
            return None
        return key, Subject(user, self._tables.organizations.get(user.organization_id))

    def key_summaries(self, user_ids: Collection[str], at: datetime) -> Mapping[str, KeySummary]:
        of_users: dict[str, list[ServiceUserKey]] = {}
        for key in self._tables.service_user_keys:
            if key.user_id in user_ids:
                of_users.setdefault(key.user_id, []).append(key)
        return {user_id: _summary_of(keys, at) for user_id, keys in of_users.items()}

    def find_holder(self, user_id: str) -> tuple[Subject, tuple[ServiceUserSecret, ...]] | None:
        user, secrets = self._tables.users.find(user_id), self.secrets(user_id)
        if not isinstance(user, ServiceUser) or not secrets:
            return None
        return Subject(user, self._tables.organizations.get(user.organization_id)), secrets

    def secrets(self, user_id: str, *, locked: bool = False) -> tuple[ServiceUserSecret, ...]:
        # A writer has the whole storage for itself, so there is nothing more to lock.
        return oldest_first(secret for secret in self._tables.service_user_secrets if secret.user_id == user_id)

    def _rows(self, kind: type) -> Table[str, Any]:
        tables: dict[type, Table[str, Any]] = {
            ServiceUserKey: self._tables.service_user_keys,
            ServiceUserSecret: self._tables.service_user_secrets,
            PersonalAccessToken: self._tables.personal_access_tokens,
        }
        return tables[kind]


def _summary_of(keys: Sequence[ServiceUserKey], at: datetime) -> KeySummary:
    live = [key.expires_at for key in keys if key.live(at)]
    return KeySummary(
        live=len(live),
        next_expiry=min(live) if live else max(key.expires_at for key in keys),
        last_used_at=max((key.last_used_at for key in keys if key.last_used_at is not None), default=None),
    )
