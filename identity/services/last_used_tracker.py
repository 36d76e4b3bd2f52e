"""When secrets, personal access tokens and federated credentials were last used: collected in memory, written
periodically."""

from datetime import datetime
from functools import partial

from identity.domain.federated_credentials import FederatedCredential
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.storage.backend import Storage

_CLIENT_SECRET = "client_secret"  # noqa: S105 - a kind
_SERVICE_USER_SECRET = "service_user_secret"  # noqa: S105
_PERSONAL_ACCESS_TOKEN = "personal_access_token"  # noqa: S105
_FEDERATED_CREDENTIAL = "federated_credential"


class LastUsedTracker:
    """One per process, for all threads: authentication costs no write, and a crash loses only the latest times. Single
    reads and writes of a dict are atomic, so it needs no lock."""

    def __init__(self) -> None:
        self._noted: dict[tuple[str, str], datetime] = {}

    def record_client_secret(self, secret_id: str, used_at: datetime) -> None:
        self._noted[_CLIENT_SECRET, secret_id] = used_at

    def record_service_user_secret(self, secret_id: str, at: datetime) -> None:
        self._noted[_SERVICE_USER_SECRET, secret_id] = at

    def record_personal_access_token(self, token_id: str, at: datetime) -> None:
        self._noted[_PERSONAL_ACCESS_TOKEN, token_id] = at

    def record_federated_credential(self, credential_id: str, at: datetime) -> None:
        self._noted[_FEDERATED_CREDENTIAL, credential_id] = at

    def drain(self) -> dict[tuple[str, str], datetime]:
        """Remove and return everything collected since the last call."""
        uses: dict[tuple[str, str], datetime] = {}
        while self._noted:
            key, at = self._noted.popitem()
            uses[key] = at
        return uses

    def restore(self, uses: dict[tuple[str, str], datetime]) -> None:
        """Collect again what could not be written."""
        for key, at in uses.items():
            self._noted.setdefault(key, at)


def write_last_used(last_used: dict[tuple[str, str], datetime], storage: Storage) -> None:
    """Update the times in the storage; they never move back."""

    def select_kind(kind: str) -> dict[str, datetime]:
        return {identifier: at for (item, identifier), at in last_used.items() if item == kind}

    for uses, touch in (
        (select_kind(_CLIENT_SECRET), storage.applications.update_secrets_last_used),
        (select_kind(_SERVICE_USER_SECRET), partial(storage.credentials.update_last_used, ServiceUserSecret)),
        (select_kind(_PERSONAL_ACCESS_TOKEN), partial(storage.credentials.update_last_used, PersonalAccessToken)),
        (select_kind(_FEDERATED_CREDENTIAL), partial(storage.credentials.update_last_used, FederatedCredential)),
    ):
        if uses:
            touch(uses)
