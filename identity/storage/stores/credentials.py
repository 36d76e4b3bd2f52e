"""Credentials of service users: keys, secrets, personal access tokens, federated credentials; these also of
applications."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import TypeVar

from identity.domain.federated_credentials import FederatedCredential
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.service_user_keys import KeySummary, ServiceUserKey
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.users import Subject
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage

CredentialT = TypeVar("CredentialT", ServiceUserKey, ServiceUserSecret, PersonalAccessToken, FederatedCredential)
#: Any of them.
Credential = ServiceUserKey | ServiceUserSecret | PersonalAccessToken | FederatedCredential
ExpiringCredentialT = TypeVar("ExpiringCredentialT", ServiceUserKey, PersonalAccessToken)


class CredentialStore(ABC):
    """They are deleted with their service user or application, and access tokens obtained with one are deleted with
    it. ``kind`` is the class of the credentials, ``owner_id`` the id of the service user or application: only the
    former has hyphens. The number per owner is not limited here."""

    @abstractmethod
    def add(self, credential: Credential) -> None:
        """Raises RowNotFound if there is no such user or application."""

    @abstractmethod
    def find(self, kind: type[CredentialT], id: str, owner_id: str) -> CredentialT | None:
        """The credential with this id, if it belongs to this owner."""

    @abstractmethod
    def delete(self, kind: type[CredentialT], owner_id: str, id: str) -> None:
        """Delete a credential of the owner and the access tokens obtained with it. Raises RowNotFound."""

    @abstractmethod
    def update_last_used(self, kind: type[CredentialT], uses: Mapping[str, datetime]) -> None:
        """Move ``last_used_at`` of those with these ids forward, never back; unknown ids are ignored."""

    @abstractmethod
    def page(
        self, kind: type[CredentialT], owner_id: str, request: PageRequest = FIRST_PAGE
    ) -> ResultPage[CredentialT]:
        """The owner's credentials, newest first."""

    @abstractmethod
    def list_expiring(
        self,
        kind: type[ExpiringCredentialT],
        after: datetime,
        until: datetime,
        limit: int,
        *,
        organization_id: str | None = None,
    ) -> tuple[ExpiringCredentialT, ...]:
        """Those with ``after < expires_at <= until``, of one organization's users or of all, soonest first."""

    @abstractmethod
    def find_key_with_subject(self, key_id: str, user_id: str) -> tuple[ServiceUserKey, Subject] | None:
        """The key with its service user and organization, in one query; None unless all three exist."""

    @abstractmethod
    def key_summaries(self, user_ids: Collection[str], now: datetime) -> Mapping[str, KeySummary]:
        """Summary of each user's keys as of ``now``, in one query; users without keys are left out."""

    @abstractmethod
    def find_subject_with_secrets(self, user_id: str) -> tuple[Subject, tuple[ServiceUserSecret, ...]] | None:
        """The service user with its organization and its secrets, oldest first, in one query. None if there is no such
        service user, or it has no secret."""

    @abstractmethod
    def find_subject_with_federated_credentials(
        self, user_id: str
    ) -> tuple[Subject, tuple[FederatedCredential, ...]] | None:
        """The same for federated credentials."""

    @abstractmethod
    def list_federated_credentials(self, owner_id: str, *, locked: bool = False) -> tuple[FederatedCredential, ...]:
        """The same as ``list_secrets`` for federated credentials, also of an application."""

    @abstractmethod
    def list_secrets(self, user_id: str, *, locked: bool = False) -> tuple[ServiceUserSecret, ...]:
        """The user's secrets, oldest first. ``locked`` makes their count reliable: others that lock them wait for the
        end of the transaction."""
