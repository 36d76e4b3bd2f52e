"""Access tokens, refresh tokens and their families."""

from abc import ABC, abstractmethod
from datetime import datetime

from identity.domain.authorization_codes import AuthorizationCode, PresentedCode
from identity.domain.records import Record
from identity.domain.tokens import (
    AccessToken,
    ConnectedApplication,
    PresentedAccessToken,
    PresentedRefreshToken,
    RefreshToken,
    TokenFamily,
)


class TokenStore(ABC):
    """Codes and tokens are known by digest alone. No method ever makes a revoked row live again.

    Whoever changes nothing else in the transaction says so by ``last``: then the change may be committed with the
    method, if nothing was changed before it, and an abort does not take it back.
    """

    @abstractmethod
    def add_family(
        self, family: TokenFamily, code: AuthorizationCode | None = None, *, is_last_write: bool = False
    ) -> None:
        """Store a new family, with the code that brings its tokens.

        Raises RowNotFound if its user or client does not exist. The transaction can go on.
        """

    @abstractmethod
    def revoke_family(self, family_id: str, revoked_at: datetime) -> None:
        """Revoke the family and so all its tokens, those of transactions still running included."""

    @abstractmethod
    def add_access_token(
        self, token: AccessToken, *, consumed_record: Record | None = None, is_last_write: bool = False
    ) -> None:
        """Record an access token and what was used up for it, a record without an owner whose key must be free.

        Raises AlreadyUsed if it is not, and then nothing is recorded; of racing callers one succeeds. Raises
        RowNotFound if its user, key, application or family is gone by now: what was looked up before the transaction
        began cannot have vanished unseen.
        """

    @abstractmethod
    def find_access_token(self, digest: bytes) -> PresentedAccessToken | None:
        """The access token with subject, organization, client (without its secrets), family and session, in
        one query. A token names a session that has ended: ``session_ended``; one that was purged has not."""

    @abstractmethod
    def revoke_access_token(self, digest: bytes, revoked_at: datetime) -> None:
        """Revoke one access token; a revoked one keeps its moment, an unknown one is ignored."""

    @abstractmethod
    def revoke_for_user(self, user_id: str, revoked_at: datetime, *, client_id: str | None = None) -> int:
        """Revoke all families that one client has of a user, or all of the user with all live access tokens.

        Returns how many families were not revoked before.
        """

    @abstractmethod
    def add_refresh_token(self, token: RefreshToken) -> None:
        """Record the first refresh token of a family."""

    @abstractmethod
    def find_refresh_token(self, digest: bytes) -> PresentedRefreshToken | None:
        """The refresh token, live or not, with family, user, organization and session, in one query."""

    @abstractmethod
    def rotate_refresh_token(
        self,
        digest: bytes,
        successor: RefreshToken,
        rotated_at: datetime,
        *,
        access: AccessToken | None = None,
        is_last_write: bool = False,
    ) -> None:
        """Exchange a live refresh token for its successor, and the access token beside it, by one conditional write.

        Raises AlreadyUsed (with the row as value) if it was rotated before, expired or not; else RowNotFound if there
        is none, or it is expired, revoked, or of a revoked family. Of racing callers exactly one succeeds. The
        transaction can go on, unless what is new cannot be stored: then RowNotFound is raised and it is to be given up.
        """

    @abstractmethod
    def replace_successor(self, predecessor: RefreshToken, successor: RefreshToken, replaced_at: datetime) -> bool:
        """Put ``successor`` in the place of the one that ``predecessor`` was rotated to, which is revoked.

        False, and nothing changes, unless that one is neither used nor revoked and the family is not revoked. Racing
        callers take turns: each puts its own in the place of the one before, so one stays live.
        """

    @abstractmethod
    def list_connected_applications(self, user_id: str, now: datetime) -> tuple[ConnectedApplication, ...]:
        """What applications hold of the user, by families that are neither revoked nor ended, last used first.

        Last used is the latest moment at which a refresh token or, without any, the family was begun.
        """

    @abstractmethod
    def add_authorization_code(self, code: AuthorizationCode) -> None:
        """Store a new code. Its family must exist (TokenStore.start_family)."""

    @abstractmethod
    def find_authorization_code(self, digest: bytes) -> PresentedCode | None:
        """The code, redeemed and expired ones included, with all that decides over it, in one query."""

    @abstractmethod
    def redeem_authorization_code(
        self,
        digest: bytes,
        *,
        client_id: str,
        redeemed_at: datetime,
        refresh: RefreshToken | None = None,
        access: AccessToken | None = None,
        is_last_write: bool = False,
    ) -> AuthorizationCode:
        """Consume the code and store what it brings by one conditional write: of racing callers exactly one gets it.

        Raises AlreadyUsed (with the code as value) if this client redeemed it before, expired or not; else RowNotFound
        if there is none, it has expired, or it is another client's: then it stays as it was. The transaction can go on,
        unless what it brings cannot be stored: then RowNotFound is raised and it is to be given up.
        """
