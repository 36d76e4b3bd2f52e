"""Store, find, redeem, rotate and revoke codes and tokens."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from identity.crypto.jwt import unverified_key_id
from identity.crypto.secrets import token_digest
from identity.domain.applications import ApplicationClient, ApplicationType
from identity.domain.authorization_codes import AuthorizationCode, PresentedCode
from identity.domain.clients import Client
from identity.domain.errors import Denied, DomainError
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.records import Record
from identity.domain.tokens import AccessToken, PresentedAccessToken, PresentedRefreshToken, RefreshToken, TokenFamily
from identity.domain.users import Agent, ServiceUser, TokenFormat
from identity.services.agent_rules import AgentRules
from identity.services.base import Service
from identity.services.last_used_tracker import LastUsedTracker
from identity.services.projects import ProjectService
from identity.services.signing_keys import KeyRing
from identity.storage.errors import AlreadyUsed, RowNotFound


class ReplayDetected(DomainError):
    """A code or refresh token was used twice: everything issued in the same family is revoked."""

    commits_transaction = True


class NotRedeemable(DomainError):
    """The code or refresh token cannot be used; nothing changed."""


@dataclass(eq=False, repr=False)
class TokenService(Service):
    """Tokens are looked up by digest: a token with one altered character was never issued."""

    _projects: ProjectService
    _ring: KeyRing
    _uses: LastUsedTracker
    _agent_rules: Callable[[], AgentRules]

    def store_access_token(self, token: AccessToken, used: Record | None = None) -> None:
        """Store an access token as the last write of the transaction. The row itself is the record: there is no audit
        event. Raises AlreadyUsed (storage) if ``used`` was consumed before, on any node."""
        self._storage.tokens.add_access_token(token, consumed_record=used, is_last_write=True)

    def store_family(
        self, family: TokenFamily, code: AuthorizationCode | None = None, *, is_last_write: bool = False
    ) -> None:
        """Start a token family and store its authorization code. ``is_last_write`` means that the transaction changes
        nothing else. Raises RowNotFound (storage)."""
        self._storage.tokens.add_family(family, code, is_last_write=is_last_write)

    def find_code(self, text: str) -> PresentedCode | None:
        """The code with everything needed to judge it, without redeeming it."""
        with self._look() as storage:
            return storage.tokens.find_authorization_code(token_digest(text))

    def redeem_code(
        self,
        code: AuthorizationCode,
        client: ApplicationClient,
        *,
        access: AccessToken | None = None,
        refresh: RefreshToken | None = None,
    ) -> None:
        """Redeem the code for its own client and store the tokens, as the last write of the transaction. Raises
        ReplayDetected, NotRedeemable, RowNotFound (storage)."""
        try:
            self._storage.tokens.redeem_authorization_code(
                code.digest,
                client_id=client.id,
                redeemed_at=self._now,
                refresh=refresh,
                access=access,
                is_last_write=True,
            )
        except AlreadyUsed:
            raise self.revoke_replayed_family(code.family_id, client, "authorization_code") from None
        except RowNotFound:
            raise NotRedeemable("The code has expired.") from None

    def find_refresh_token(self, text: str) -> PresentedRefreshToken | None:
        """The refresh token with everything needed to judge it, without using it."""
        with self._look() as storage:
            return storage.tokens.find_refresh_token(token_digest(text))

    def is_within_grace(self, token: RefreshToken) -> bool:
        """True if the token was rotated so recently that its client may have missed the response."""
        return (
            token.rotated_at is not None
            and bool(self._settings.refresh_token_grace)
            and self._now - token.rotated_at <= self._settings.refresh_token_grace
        )

    def rotate_refresh_token(
        self, token: RefreshToken, client: ApplicationClient, *, access: AccessToken | None, successor: RefreshToken
    ) -> None:
        """Replace a refresh token by its successor and an access token, as the last write of the transaction: one of
        several racing requests succeeds.

        Within ``identity.refresh_token_grace`` the immediate predecessor of an unused token gets another successor,
        which replaces the first. Raises ReplayDetected, NotRedeemable, RowNotFound (storage)."""
        try:
            self._storage.tokens.rotate_refresh_token(
                token.digest, successor, self._now, access=access, is_last_write=True
            )
        except AlreadyUsed as used:
            stored = used.value
            if (
                isinstance(stored, RefreshToken)
                and self.is_within_grace(stored)
                and self._storage.tokens.replace_successor(stored, successor, self._now)
            ):
                if access is not None:
                    self.store_access_token(access)
                return
            raise self.revoke_replayed_family(token.family_id, client, "refresh_token") from None
        except RowNotFound:
            raise NotRedeemable("The refresh token is revoked or has expired.") from None

    def revoke_replayed_family(self, family_id: str, client: ApplicationClient, kind: str) -> ReplayDetected:
        """Revoke the family of a replayed code or token; returns the exception to raise."""
        self._storage.tokens.revoke_family(family_id, self._now)
        # Once, so that repeated replays cannot fill the audit trail.
        self._audit.record_once(
            f"token.replayed|{kind}|{family_id}",
            "token.replayed",
            kind=kind,
            id=family_id,
            organization_id=client.organization.id,
            detail={"client_id": client.id},
        )
        return ReplayDetected("This was used before.")

    def find_live_access_token(self, text: str) -> PresentedAccessToken | None:
        """The access token with its owner and client, if it is valid right now. A signed one is valid until its key is
        withdrawn. Projects to which its user or client has lost the right are removed from its audience, and the
        service's own project while an agent acts for its owner."""
        issued = self._storage.tokens.find_access_token(token_digest(text))
        if issued is None or not self._is_live(issued):
            return None
        if issued.token.ancestors:
            ancestors = self._find_live_ancestors(issued.token)
            if ancestors is None:
                return None
            if any(self._is_agent_for_owner(ancestor, issued) for ancestor in ancestors):
                audience = self._agent_rules().without_management(issued.token.audience)
                issued = replace(issued, token=replace(issued.token, audience=audience))
        signed = issued.token.format is TokenFormat.JWT
        if signed and not self._ring.stands_behind(unverified_key_id(text), self._look, self._now):
            return None
        issued = self._narrowed(issued)
        if issued.token.personal_access_token_id is not None:
            self._uses.record_personal_access_token(issued.token.personal_access_token_id, self._now)
        return issued

    def _is_live(self, issued: PresentedAccessToken) -> bool:
        return issued.is_live(self._now) and (
            issued.subject is None
            or not isinstance(issued.subject.user, Agent)
            or self._agent_rules().has_active_owner(issued.subject)
        )

    def _find_live_ancestors(self, token: AccessToken) -> list[PresentedAccessToken] | None:
        """The tokens that this one was exchanged from; None if one of them has ended or is gone. It is judged at each
        use, so an exchange that races with a revocation leaves no live token, whichever commits first."""
        found = [self._storage.tokens.find_access_token(bytes.fromhex(item)) for item in token.ancestors or ()]
        live = [ancestor for ancestor in found if ancestor is not None and self._is_live(ancestor)]
        return live if len(live) == len(found) else None

    def _is_agent_for_owner(self, ancestor: PresentedAccessToken, issued: PresentedAccessToken) -> bool:
        """True if the ancestor is the token of an agent, with which it acts for another user."""
        actor = ancestor.subject
        return actor is not None and isinstance(actor.user, Agent) and actor.user.id != issued.token.user_id

    def is_in_audience(self, issued: PresentedAccessToken, client: ApplicationClient) -> bool:
        """True if the live token is meant for the client. A project in the audience counts only if both the token's
        user and its application have a right to it."""
        audience, project_id = issued.token.audience, client.project.id
        if client.id in audience or project_id not in audience or client.application.is_dynamic:
            return client.id in audience
        # Other projects without a right are no longer in the audience; the application's own project needs a check.
        unasked = issued.client is not None and issued.client.project.id == project_id
        return not unasked or bool(self._allowed(frozenset({project_id}), issued))

    def revoke_token(self, text: str, client: Client) -> None:
        """Revoke a token on behalf of a client (RFC 7009 §2.1); unknown tokens are ignored. A refresh token takes its
        whole family along, a personal access token is deleted. Raises Denied, changing nothing, for another client's
        token."""
        key = token_digest(text)
        issued = self._storage.tokens.find_access_token(key)
        if issued is not None:
            if not self._may_revoke(issued, client):
                raise Denied("The token was issued to another client.")
            if issued.token.revoked_at is None:
                self._end(issued.token)
                self._record(issued.token.id, client, "access_token")
            return
        presented = self._storage.tokens.find_refresh_token(key)
        if presented is None:
            return
        refresh = presented.token
        if refresh.client_id != client.id:
            raise Denied("The token was issued to another client.")
        self._storage.tokens.revoke_family(refresh.family_id, self._now)
        self._record(refresh.id, client, "refresh_token")

    def _end(self, token: AccessToken) -> None:
        if token.personal_access_token_id is None or token.user_id is None:
            self._storage.tokens.revoke_access_token(token.digest, self._now)
            return
        # It may have been deleted concurrently.
        with suppress(RowNotFound):
            self._storage.credentials.delete(PersonalAccessToken, token.user_id, token.personal_access_token_id)

    def _may_revoke(self, issued: PresentedAccessToken, client: Client) -> bool:
        if issued.token.client_id == client.id:
            return True
        # A service user without a secret cannot authenticate here; the service's own API applications may do it.
        return (
            isinstance(client, ApplicationClient)
            and issued.token.application_id is None
            and issued.subject is not None
            and isinstance(issued.subject.user, ServiceUser)
            and client.application.type is ApplicationType.API
            and self._projects.is_own_project(client.project.id)
        )

    def _narrowed(self, issued: PresentedAccessToken) -> PresentedAccessToken:
        """The token without the projects that its audience has lost."""
        token, client = issued.token, issued.client
        # Application, its project and the issuer need no check. A dynamic client does not belong to its project.
        certain = {self._settings.issuer_url, token.client_id}
        is_dynamic = client is not None and client.application.is_dynamic
        if client is not None and not is_dynamic and not self._projects.is_own_project(client.project.id):
            certain.add(client.project.id)
        named = frozenset(token.audience) - certain
        # Resource URIs are beside their project. Ids have no colon.
        uris = frozenset(item for item in named if ":" in item)
        named -= uris
        lost = named - self._allowed(named, issued) if named else named
        if not lost:
            return issued
        lost |= uris
        return replace(
            issued, token=replace(token, audience=tuple(item for item in token.audience if item not in lost))
        )

    def _allowed(self, project_ids: frozenset[str], issued: PresentedAccessToken) -> frozenset[str]:
        issued_at = issued.token.issued_at
        return self._projects.filter_audience(project_ids, issued.subject, issued.client, issued_at=issued_at)

    def _record(self, token_id: str, client: Client, kind: str) -> None:
        self._audit.record(
            "token.revoked",
            kind=kind,
            id=token_id,
            organization_id=client.organization.id,
            detail={"client_id": client.id},
        )
