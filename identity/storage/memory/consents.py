"""Consents, in memory."""

from identity.domain.consents import Consent
from identity.storage.memory.tables import Tables
from identity.storage.stores.consents import ConsentStore


class MemoryConsentStore(ConsentStore):
    """Rows by user and application."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def set(self, consent: Consent) -> None:
        self._tables.users.get(consent.user_id)
        self._tables.applications.get(consent.application_id)
        self._tables.consents.put((consent.user_id, consent.application_id), consent)

    def find(self, user_id: str, application_id: str) -> Consent | None:
        return self._tables.consents.find((user_id, application_id))

    def of_user(self, user_id: str) -> tuple[Consent, ...]:
        found = (consent for consent in self._tables.consents if consent.user_id == user_id)
        return tuple(sorted(found, key=lambda one: (one.given_at, one.application_id), reverse=True))

    def remove(self, user_id: str, application_id: str) -> None:
        self._tables.consents.delete((user_id, application_id))
