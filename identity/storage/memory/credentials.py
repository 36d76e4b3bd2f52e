"""Credentials of service users, in memory."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from identity.domain.federated_credentials import FederatedCredential
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.service_user_keys import KeySummary, ServiceUserKey
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.users import ServiceUser, Subject
from identity.storage.errors import RowNotFound
from identity.storage.memory.entity_store import MemoryStore, page_newest_first, sort_oldest_first, update_last_used
from identity.storage.memory.tables import MemoryTable
from identity.storage.memory.users import find_subject
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.credentials import Credential, CredentialStore, CredentialT, ExpiringCredentialT


class MemoryCredentialStore(MemoryStore, CredentialStore):
    """Rows by id, each kind in a table of its own."""

    def add(self, credential: Credential) -> None:
        self._rows(type(credential)).insert({credential.id: credential})

    def find(self, kind: type[CredentialT], id: str, owner_id: str) -> CredentialT | None:
        found: CredentialT | None = self._rows(kind).find(id)
        return found if found is not None and _owner_id(found) == owner_id else None

    def delete(self, kind: type[CredentialT], owner_id: str, id: str) -> None:
        if self.find(kind, id, owner_id) is None:
            raise RowNotFound(id)
        self._rows(kind).delete(id)

    def update_last_used(self, kind: type[CredentialT], uses: Mapping[str, datetime]) -> None:
        update_last_used(self._rows(kind), uses)

    def page(
        self, kind: type[CredentialT], owner_id: str, request: PageRequest = FIRST_PAGE
    ) -> ResultPage[CredentialT]:
        return page_newest_first((row for row in self._rows(kind) if _owner_id(row) == owner_id), request)

    def list_expiring(
        self,
        kind: type[ExpiringCredentialT],
        after: datetime,
        until: datetime,
        limit: int,
        *,
        organization_id: str | None = None,
    ) -> tuple[ExpiringCredentialT, ...]:
        users, due = self._tables.users, (row for row in self._rows(kind) if after < row.expires_at <= until)
        found = [row for row in due if organization_id in (None, users.get(row.user_id).organization_id)]
        return tuple(sorted(found, key=lambda item: (item.expires_at, item.id))[:limit])

    def find_key_with_subject(self, key_id: str, user_id: str) -> tuple[ServiceUserKey, Subject] | None:
        key, subject = self.find(ServiceUserKey, key_id, user_id), self._find_service_user(user_id)
        return None if key is None or subject is None else (key, subject)

    def key_summaries(self, user_ids: Collection[str], now: datetime) -> Mapping[str, KeySummary]:
        keys = {id_: [row for row in self._tables.service_user_keys if row.user_id == id_] for id_ in user_ids}
        return {user_id: _summarize_keys(user_keys, now) for user_id, user_keys in keys.items() if user_keys}

    def find_subject_with_secrets(self, user_id: str) -> tuple[Subject, tuple[ServiceUserSecret, ...]] | None:
        subject, secrets = self._find_service_user(user_id), self.list_secrets(user_id)
        return (subject, secrets) if subject is not None and secrets else None

    def _find_service_user(self, user_id: str) -> Subject | None:
        subject = find_subject(self._tables, user_id)
        return subject if subject is not None and isinstance(subject.user, ServiceUser) else None

    def list_secrets(self, user_id: str, *, locked: bool = False) -> tuple[ServiceUserSecret, ...]:
        # Writers are exclusive, so no further lock is needed.
        return sort_oldest_first(secret for secret in self._tables.service_user_secrets if secret.user_id == user_id)

    def find_subject_with_federated_credentials(
        self, user_id: str
    ) -> tuple[Subject, tuple[FederatedCredential, ...]] | None:
        subject, credentials = self._find_service_user(user_id), self.list_federated_credentials(user_id)
        return (subject, credentials) if subject is not None and credentials else None

    def list_federated_credentials(self, owner_id: str, *, locked: bool = False) -> tuple[FederatedCredential, ...]:
        return sort_oldest_first(row for row in self._tables.federated_credentials if row.owner_id == owner_id)

    def _rows(self, kind: type) -> MemoryTable[str, Any]:
        tables: dict[type, MemoryTable[str, Any]] = {
            ServiceUserKey: self._tables.service_user_keys,
            ServiceUserSecret: self._tables.service_user_secrets,
            PersonalAccessToken: self._tables.personal_access_tokens,
            FederatedCredential: self._tables.federated_credentials,
        }
        return tables[kind]


def _owner_id(credential: Credential) -> str:
    return credential.owner_id if isinstance(credential, FederatedCredential) else credential.user_id


def _summarize_keys(keys: Sequence[ServiceUserKey], at: datetime) -> KeySummary:
    live = [key.expires_at for key in keys if key.is_live(at)]
    return KeySummary(
        live_count=len(live),
        next_expires_at=min(live) if live else max(key.expires_at for key in keys),
        last_used_at=max((key.last_used_at for key in keys if key.last_used_at is not None), default=None),
    )
