"""Secrets of service users, in memory."""

from collections.abc import Mapping
from datetime import datetime

from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.users import ServiceUser, Subject
from identity.storage.errors import Missing
from identity.storage.memory.entities import MemoryStore, oldest_first, touch
from identity.storage.stores.service_user_secrets import ServiceUserSecretStore


class MemoryServiceUserSecretStore(MemoryStore, ServiceUserSecretStore):
    """Rows by id."""

    def add(self, secret: ServiceUserSecret) -> None:
        self._tables.service_user_secrets.insert({secret.id: secret})

    def find_holder(self, user_id: str) -> tuple[Subject, tuple[ServiceUserSecret, ...]] | None:
        user, secrets = self._tables.users.find(user_id), self.of_user(user_id)
        if not isinstance(user, ServiceUser) or not secrets:
            return None
        return Subject(user, self._tables.organizations.get(user.organization_id)), secrets

    def of_user(self, user_id: str) -> tuple[ServiceUserSecret, ...]:
        return oldest_first(secret for secret in self._tables.service_user_secrets if secret.user_id == user_id)

    def lock_of_user(self, user_id: str) -> tuple[ServiceUserSecret, ...]:
        # A writer has the whole storage for itself, so there is nothing more to lock.
        return self.of_user(user_id)

    def remove(self, user_id: str, secret_id: str) -> None:
        if self._tables.service_user_secrets.get(secret_id).user_id != user_id:
            raise Missing(secret_id)
        self._tables.service_user_secrets.delete(secret_id)

    def touch(self, uses: Mapping[str, datetime]) -> None:
        touch(self._tables.service_user_secrets, uses)
