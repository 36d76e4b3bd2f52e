"""Record, find and revoke tokens."""

from datetime import datetime

from identity.crypto.secrets import digest
from identity.domain.applications import ApplicationType, Client
from identity.domain.errors import Denied
from identity.domain.tokens import AccessToken, IssuedToken
from identity.domain.users import ServiceUser
from identity.services.audit import Recorder
from identity.services.changes import TellInstance, UseCases
from identity.storage.backend import Storage


class Tokens(UseCases):
    """Tokens are known by digest: what was altered by one character was never issued."""

    def __init__(self, storage: Storage, audit: Recorder, now: datetime, *, instance: TellInstance) -> None:
        super().__init__(storage, audit, now)
        self._instance = instance

    def record(self, token: AccessToken) -> None:
        """Keep an access token; the row is its record, there is no audit event."""
        self._storage.tokens.add_access(token)

    def find_live(self, text: str) -> IssuedToken | None:
        """The access token with its owner and client, if nothing stands against it right now."""
        issued = self._storage.tokens.find_issued(digest(text))
        return issued if issued is not None and issued.live(self._now) else None

    def in_audience(self, issued: IssuedToken, client: Client) -> bool:
        """True if the token is meant for the client.

        An audience that came from a project grant ends with the grant: a client is not told of tokens whose user's
        organization lost the project meanwhile.
        """
        token = issued.token
        if not client.in_audience(token.audience):
            return False
        if client.id in token.audience or issued.subject is None:
            return True
        organization_id = issued.subject.organization.id
        if client.organization.id == organization_id or self._is_own_project(client.project.id):
            return True
        return bool(self._storage.projects.audience(frozenset({client.project.id}), organization_id))

    def revoke(self, text: str, client: Client) -> None:
        """Revoke a token on behalf of a client (RFC 7009 §2.1); unknown tokens are ignored.

        A refresh token takes its whole family along. Raises Denied, changing nothing, for another client's token.
        """
        key = digest(text)
        issued = self._storage.tokens.find_issued(key)
        if issued is not None:
            if not self._may_revoke(issued, client):
                raise Denied("The token was issued to another client.")
            if issued.token.revoked_at is None:
                self._storage.tokens.revoke_access(key, self._now)
                self._record(issued.token.id, client, "access_token")
            return
        refresh = self._storage.tokens.find_refresh(key)
        if refresh is None:
            return
        if refresh.client_id != client.id:
            raise Denied("The token was issued to another client.")
        self._storage.tokens.revoke_family(refresh.family_id, self._now)
        self._record(refresh.id, client, "refresh_token")

    def _may_revoke(self, issued: IssuedToken, client: Client) -> bool:
        if issued.token.client_id == client.id:
            return True
        # A service user is no client that could authenticate here; the service's own API applications stand in.
        return (
            issued.token.application_id is None
            and issued.subject is not None
            and isinstance(issued.subject.user, ServiceUser)
            and client.application.type is ApplicationType.API
            and self._is_own_project(client.project.id)
        )

    def _is_own_project(self, project_id: str) -> bool:
        instance = self._instance()
        return instance is not None and instance.project_id == project_id

    def _record(self, token_id: str, client: Client, kind: str) -> None:
        self._audit.record(
            "token.revoked",
            kind=kind,
            id=token_id,
            organization_id=client.organization.id,
            detail={"client_id": client.id},
        )
