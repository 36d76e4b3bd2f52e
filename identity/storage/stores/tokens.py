"""Access tokens, refresh tokens and their families."""

from abc import ABC, abstractmethod
from collections.abc import Collection
from datetime import datetime

from identity.domain.access_revocations import AccessScope
from identity.domain.applications import ApplicationClient
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
    """Codes and tokens are stored by digest only. No method makes a revoked row live again. Pass ``last`` if the
    transaction changes nothing else: then the method may commit it, if nothing was changed before, and an abort does
    not undo it."""

    @abstractmethod
    def add_family(
        self, family: TokenFamily, code: AuthorizationCode | None = None, *, is_last_write: bool = False
    ) -> None:
        """Store a new family with its authorization code. Raises RowNotFound if its user or client does not exist. The
        transaction can continue."""

    @abstractmethod
    def revoke_family(self, family_id: str, revoked_at: datetime) -> None:
        """Revoke the family and with it all its tokens, including those of transactions still running."""

    @abstractmethod
    def add_access_token(
        self, token: AccessToken, *, consumed_record: Record | None = None, is_last_write: bool = False
    ) -> None:
        """Store an access token and the record that it uses up, which has no owner and must be new. Raises AlreadyUsed
        if it is not, and then nothing is stored; one of several racing callers succeeds. Raises RowNotFound if its
        user, key, application or family is gone by now, even if it was read before the transaction began."""

    @abstractmethod
    def find_access_token(self, digest: bytes) -> PresentedAccessToken | None:
        """The access token with subject, organization, client (without its secrets), family and session, in one query.
        ``session_ended`` is True for a session that has ended, False for one that was purged."""

    @abstractmethod
    def count_live_jwts(self, since: datetime, until: datetime, now: datetime, limit: int) -> int:
        """Number of JWTs issued from ``since`` on and before ``until`` that are neither expired nor revoked; at most
        ``limit`` are counted."""

    @abstractmethod
    def revoke_access_token(self, digest: bytes, revoked_at: datetime) -> None:
        """Revoke one access token; a revoked one keeps its time, an unknown one is ignored."""

    @abstractmethod
    def revoke_for_user(self, user_id: str, revoked_at: datetime, *, client_id: str | None = None) -> int:
        """Revoke all of a user's families and live access tokens, or those at one client. Returns the number of
        families that were not revoked before."""

    @abstractmethod
    def revoke_for_provider(self, provider_id: str, revoked_at: datetime, *, user_id: str | None = None) -> int:
        """Revoke all families that assertions of the identity provider began, or those of one user. Returns the number
        of families that were not revoked before."""

    @abstractmethod
    def revoke_all(self, scope: AccessScope, revoked_at: datetime) -> int:
        """Revoke the families and live access tokens in the scope, and delete the personal access tokens of its users.
        Returns the number of families and tokens that had not ended before."""

    @abstractmethod
    def add_refresh_token(self, token: RefreshToken) -> None:
        """Store the first refresh token of a family."""

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
        """Replace a live refresh token by its successor, and store the access token, by one conditional write.

        Raises AlreadyUsed (with the row as value) if it was rotated before, expired or not; else RowNotFound if
        there is none, or it is expired, revoked, or of a revoked family. Exactly one of several racing callers
        succeeds. The transaction can continue, unless the new tokens cannot be stored: then RowNotFound is raised
        and it must be aborted.
        """

    @abstractmethod
    def replace_successor(self, predecessor: RefreshToken, successor: RefreshToken, replaced_at: datetime) -> bool:
        """Replace the token that ``predecessor`` was rotated to by ``successor``, and revoke it. False, and nothing
        changes, unless that token is neither used nor revoked and the family is not revoked. Racing callers take turns:
        each replaces the previous one's, so one stays live."""

    @abstractmethod
    def list_connected_applications(self, user_id: str, now: datetime) -> tuple[ConnectedApplication, ...]:
        """Applications with families of the user that are neither revoked nor ended, last used first. Last used is the
        time of the latest refresh token or, without any, of the family."""

    @abstractmethod
    def has_family(self, client_id: str, *, live_at: datetime | None = None) -> bool:
        """True if the application has a token family; with ``live_at`` one that is not revoked and ends after that."""

    @abstractmethod
    def list_logout_clients(
        self, user_ids: Collection[str], ended_at: datetime
    ) -> tuple[tuple[str, str, ApplicationClient], ...]:
        """The applications with an address for logouts that got tokens in those sessions of the users that ended at
        this moment: ids of user and session with the application, without secrets, once for each session; first
        sign-in first. Revoked families count, too."""

    @abstractmethod
    def add_authorization_code(self, code: AuthorizationCode) -> None:
        """Store a new code. Its family must exist (``add_family``)."""

    @abstractmethod
    def find_authorization_code(self, digest: bytes) -> PresentedCode | None:
        """The code, including redeemed and expired ones, with everything needed to judge it, in one query."""

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
        """Redeem the code and store its tokens by one conditional write: exactly one of several racing callers
        succeeds.

        Raises AlreadyUsed (with the code as value) if this client redeemed it before, expired or not; else
        RowNotFound if there is none, it has expired, or it is another client's: then it stays unchanged. The
        transaction can continue, unless the tokens cannot be stored: then RowNotFound is raised and it must be
        aborted.
        """
