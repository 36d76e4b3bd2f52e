"""Access tokens, refresh tokens and their families, in memory."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from identity.domain.access_revocations import AccessScope
from identity.domain.applications import ApplicationClient
from identity.domain.authorization_codes import AuthorizationCode, PresentedCode
from identity.domain.deletion_impact import DeletionTarget
from identity.domain.records import Record
from identity.domain.tokens import (
    AccessToken,
    ConnectedApplication,
    PresentedAccessToken,
    PresentedRefreshToken,
    RefreshToken,
    TokenFamily,
    connected_applications,
)
from identity.domain.users import TokenFormat
from identity.storage.errors import AlreadyUsed, RowNotFound
from identity.storage.memory.applications import find_client
from identity.storage.memory.entity_store import MemoryStore
from identity.storage.memory.records import MemoryRecordStore
from identity.storage.memory.sessions import has_ended
from identity.storage.memory.users import find_subject, organization_user_ids
from identity.storage.stores.tokens import TokenStore


class MemoryTokenStore(MemoryStore, TokenStore):
    """Tokens by digest, families by id."""

    def add_family(
        self, family: TokenFamily, code: AuthorizationCode | None = None, *, is_last_write: bool = False
    ) -> None:
        self._tables.families.insert({family.id: family})
        if code is not None:
            self.add_authorization_code(code)

    def revoke_family(self, family_id: str, revoked_at: datetime) -> None:
        family = self._tables.families.find(family_id)
        if family is not None and family.revoked_at is None:
            self._tables.families.replace_unchecked(family_id, replace(family, revoked_at=revoked_at))

    def add_access_token(
        self, token: AccessToken, *, consumed_record: Record | None = None, is_last_write: bool = False
    ) -> None:
        if consumed_record is not None and MemoryRecordStore(self._tables).add(consumed_record) is not None:
            raise AlreadyUsed
        if token.client_secret_id is not None:
            self._tables.client_secrets.get((str(token.application_id), token.client_secret_id))
        self._tables.access_tokens.insert({token.digest: token})

    def find_access_token(self, digest: bytes) -> PresentedAccessToken | None:
        token = self._tables.access_tokens.find(digest)
        if token is None:
            return None
        family = self._tables.families.find(token.family_id)
        return PresentedAccessToken(
            token,
            find_subject(self._tables, token.user_id),
            find_client(self._tables, token.application_id),
            family_revoked=token.family_id is not None and self._is_revoked(token.family_id),
            session_ended=has_ended(self._tables, token.session_id),
            claims=() if family is None else family.userinfo_claims,
            methods=() if family is None else family.methods,
            acr="" if family is None else family.acr,
            authenticated_at=None if family is None else family.authenticated_at,
        )

    def count_live_jwts(self, since: datetime, until: datetime, now: datetime, limit: int) -> int:
        live = sum(
            token.format is TokenFormat.JWT
            and since <= token.issued_at < until
            and token.revoked_at is None
            and now < token.expires_at
            for token in self._tables.access_tokens
        )
        return min(live, limit)

    def revoke_access_token(self, digest: bytes, revoked_at: datetime) -> None:
        token = self._tables.access_tokens.find(digest)
        if token is not None and token.revoked_at is None:
            self._tables.access_tokens.replace_unchecked(digest, replace(token, revoked_at=revoked_at))

    def revoke_for_user(self, user_id: str, revoked_at: datetime, *, client_id: str | None = None) -> int:
        standing = [
            family
            for family in self._tables.families
            if family.user_id == user_id and client_id in (None, family.client_id) and family.revoked_at is None
        ]
        for family in standing:
            self.revoke_family(family.id, revoked_at)
        for token in self._tables.access_tokens:
            at_client = client_id in (None, token.application_id)
            if at_client and token.user_id == user_id and revoked_at < token.expires_at:
                self.revoke_access_token(token.digest, revoked_at)
        return len(standing)

    def revoke_for_provider(self, provider_id: str, revoked_at: datetime, *, user_id: str | None = None) -> int:
        standing = [
            family
            for family in self._tables.families
            if family.provider_id == provider_id and user_id in (None, family.user_id) and family.revoked_at is None
        ]
        for family in standing:
            self.revoke_family(family.id, revoked_at)
        return len(standing)

    def revoke_all(self, scope: AccessScope, revoked_at: datetime) -> int:
        users, applications = self._users_and_applications(scope)
        tables, spared = self._tables, scope.except_user_ids
        doomed = [token for token in tables.personal_access_tokens if token.user_id in users]
        families = [
            family
            for family in tables.families
            if family.revoked_at is None
            and (family.user_id in users or (family.client_id in applications and family.user_id not in spared))
        ]
        for family in families:
            self.revoke_family(family.id, revoked_at)
        tokens = [
            token
            for token in tables.access_tokens
            if token.revoked_at is None
            and revoked_at < token.expires_at
            and (token.user_id in users or (token.application_id in applications and token.user_id not in spared))
        ]
        for token in tokens:
            self.revoke_access_token(token.digest, revoked_at)
        for personal in doomed:
            tables.personal_access_tokens.delete(personal.id)
        return len(families) + len(tokens)

    def _users_and_applications(self, scope: AccessScope) -> tuple[frozenset[str], frozenset[str]]:
        if scope.target is DeletionTarget.USER:
            return frozenset({scope.id}), frozenset()
        if scope.target is DeletionTarget.APPLICATION:
            return frozenset(), frozenset({scope.id})
        projects = {project.id for project in self._tables.projects if project.organization_id == scope.id}
        applications = frozenset(item.id for item in self._tables.applications if item.project_id in projects)
        return organization_user_ids(self._tables, scope.id, scope.except_user_ids), applications

    def add_refresh_token(self, token: RefreshToken) -> None:
        self._tables.refresh_tokens.insert({token.digest: token})

    def find_refresh_token(self, digest: bytes) -> PresentedRefreshToken | None:
        token = self._tables.refresh_tokens.find(digest)
        if token is None:
            return None
        return PresentedRefreshToken(
            token,
            self._tables.families.get(token.family_id),
            find_subject(self._tables, token.user_id),
            session_ended=has_ended(self._tables, token.session_id),
        )

    def rotate_refresh_token(
        self,
        digest: bytes,
        successor: RefreshToken,
        rotated_at: datetime,
        *,
        access: AccessToken | None = None,
        is_last_write: bool = False,
    ) -> None:
        token = self._tables.refresh_tokens.get(digest)
        # A replay is reported even after the token has expired: it is a sign of theft.
        if token.rotated_at is not None:
            raise AlreadyUsed(token)
        expired = min(token.expires_at, token.ends_at) <= rotated_at
        if expired or token.revoked_at is not None or self._is_revoked(token.family_id):
            raise RowNotFound("refresh token")
        self._tables.refresh_tokens.replace_unchecked(digest, replace(token, rotated_at=rotated_at))
        self._add(successor, access)

    def replace_successor(self, predecessor: RefreshToken, successor: RefreshToken, replaced_at: datetime) -> bool:
        present = [
            token
            for token in self._tables.refresh_tokens
            if token.family_id == predecessor.family_id
            and token.predecessor_id == predecessor.id
            and token.rotated_at is None
            and token.revoked_at is None
        ]
        if not present or self._is_revoked(predecessor.family_id):
            return False
        self.add_refresh_token(successor)
        for token in present:
            self._tables.refresh_tokens.replace_unchecked(token.digest, replace(token, revoked_at=replaced_at))
        return True

    def list_connected_applications(self, user_id: str, now: datetime) -> tuple[ConnectedApplication, ...]:
        live = [
            family
            for family in self._tables.families
            if family.user_id == user_id and family.revoked_at is None and now < family.ends_at
        ]
        live.sort(key=lambda family: (family.started_at, family.id))
        found = ((row, find_client(self._tables, row.client_id), self._last_used_at(row)) for row in live)
        return connected_applications((row, client, used_at) for row, client, used_at in found if client is not None)

    def has_family(self, client_id: str, *, live_at: datetime | None = None) -> bool:
        return any(
            family.client_id == client_id
            and (live_at is None or (family.revoked_at is None and live_at < family.ends_at))
            for family in self._tables.families
        )

    def list_logout_clients(
        self, user_ids: Collection[str], ended_at: datetime
    ) -> tuple[tuple[str, str, ApplicationClient], ...]:
        ended = {
            session.id: session.user_id
            for session in self._tables.sessions
            if session.user_id in user_ids and session.ended_at == ended_at
        }
        of_users = [family for family in self._tables.families if family.user_id in user_ids]
        of_users.sort(key=lambda family: (family.started_at, family.id))
        found = {(family.session_id, family.client_id): None for family in of_users}
        clients = [
            (ended[session_id], session_id, find_client(self._tables, client_id))
            for session_id, client_id in found
            if session_id is not None and session_id in ended
        ]
        return tuple(
            (user_id, session_id, client)
            for user_id, session_id, client in clients
            if client is not None and client.application.has_logout_uri
        )

    def _last_used_at(self, family: TokenFamily) -> datetime:
        issued = (token.issued_at for token in self._tables.refresh_tokens if token.family_id == family.id)
        return max(issued, default=family.started_at)

    def _is_revoked(self, family_id: str) -> bool:
        family = self._tables.families.find(family_id)
        return family is None or family.revoked_at is not None

    def add_authorization_code(self, code: AuthorizationCode) -> None:
        self._tables.authorization_codes.insert({code.digest: code})

    def find_authorization_code(self, digest: bytes) -> PresentedCode | None:
        code = self._tables.authorization_codes.find(digest)
        if code is None:
            return None
        return PresentedCode(
            code,
            self._tables.families.get(code.family_id),
            find_subject(self._tables, code.user_id),
            session_ended=has_ended(self._tables, code.session_id),
        )

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
        code = self._tables.authorization_codes.get(digest)
        if code.client_id != client_id:
            raise RowNotFound("code")
        # A replay is reported even after the code has expired: it is a sign of theft.
        if code.redeemed_at is not None:
            raise AlreadyUsed(code)
        if code.expires_at <= redeemed_at:
            raise RowNotFound("code")
        redeemed = replace(code, redeemed_at=redeemed_at)
        self._tables.authorization_codes.replace_unchecked(digest, redeemed)
        self._add(refresh, access)
        return redeemed

    def _add(self, refresh: RefreshToken | None, access: AccessToken | None) -> None:
        """Store the tokens obtained with a code or a refresh token."""
        if refresh is not None:
            self.add_refresh_token(refresh)
        if access is not None:
            self.add_access_token(access)
