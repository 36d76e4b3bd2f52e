"""What service users prove who they are with: keys, secrets, personal access tokens."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import TypeVar

from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.service_user_keys import KeySummary, ServiceUserKey
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.users import Subject
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage

CredentialT = TypeVar("CredentialT", ServiceUserKey, ServiceUserSecret, PersonalAccessToken)
ExpiringCredentialT = TypeVar("ExpiringCredentialT", ServiceUserKey, PersonalAccessToken)


class CredentialStore(ABC):
    """They belong to their service user and go with it; the access tokens that name one go with that one.

    ``kind`` is the class of the credentials that are meant. How many a user may have is not decided here.
    """

    @abstractmethod
    def add(self, credential: ServiceUserKey | ServiceUserSecret | PersonalAccessToken) -> None:
        """Store it beside the others. Raises RowNotFound if there is no such user."""

    @abstractmethod
    def find(self, kind: type[CredentialT], id: str, user_id: str) -> CredentialT | None:  # noqa: A002
        """The one with this id, if it is this user's."""

    @abstractmethod
    def delete(self, kind: type[CredentialT], user_id: str, id: str) -> None:  # noqa: A002
        """Delete one of the user with the access tokens that it obtained. Raises RowNotFound."""

    @abstractmethod
    def update_last_used(self, kind: type[CredentialT], uses: Mapping[str, datetime]) -> None:
        """Move ``last_used_at`` of those with these ids forward, never back; unknown ids are ignored."""

    @abstractmethod
    def page(self, kind: type[CredentialT], user_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[CredentialT]:
        """Those of the user, newest first."""

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
        """Those, of one organization's users or of all, with ``after < expires_at <= until``, soonest first."""

    @abstractmethod
    def find_key_with_subject(self, key_id: str, user_id: str) -> tuple[ServiceUserKey, Subject] | None:
        """The key with its service user and organization, in one query; None unless all three exist."""

    @abstractmethod
    def key_summaries(self, user_ids: Collection[str], now: datetime) -> Mapping[str, KeySummary]:
        """The keys of each of these users taken together, as they are at ``now``, in one query; users without a key are
        left out."""

    @abstractmethod
    def find_subject_with_secrets(self, user_id: str) -> tuple[Subject, tuple[ServiceUserSecret, ...]] | None:
        """The service user with its organization and its secrets, oldest first, in one query.

        None if there is no such service user, or it has no secret.
        """

    @abstractmethod
    def list_secrets(self, user_id: str, *, locked: bool = False) -> tuple[ServiceUserSecret, ...]:
        """The user's secrets, oldest first.

        ``locked`` so that they can be counted: whoever else locks them waits for the end of the transaction.
        """
