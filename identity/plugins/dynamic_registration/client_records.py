"""Records of registrations: initial access tokens and their uses, slots of a project, registration access tokens.

A limited number is a set of records with the keys 0 to n - 1. Adding one of them is one conditional statement, so of
parallel requests no two get the same.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from identity.api.crypto import find_matching_digest, new_token, token_digest
from identity.api.entities import Conflict, NotFound, Project
from identity.api.services import RecordNamespace, RecordService, Services

MAX_TOKENS, MAX_USES, MAX_LIFETIME_DAYS = 20, 100, 365
_TOKENS, _USE, _SLOT, _CLIENT = "initial_access_tokens", "use", "slot", "client"


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialAccessToken:
    """Lets clients register in a project, ``uses`` times. ``digest`` is that of its secret part."""

    id: str
    name: str
    uses: int
    created_at: datetime
    expires_at: datetime
    digest: bytes


class ClientRecords:
    """The records of one transaction."""

    def __init__(self, services: Services, namespace: RecordNamespace) -> None:
        self._records: RecordService = services.record_service(namespace)
        self._services = services
        self._now = services.now

    # --- initial access tokens -----------------------------------------------------------------------------------

    def list_tokens(self, project_id: str) -> tuple[InitialAccessToken, ...]:
        """The project's unexpired tokens, newest first."""
        record = self._records.find(_TOKENS, project_id)
        stored = [] if record is None else record.value["tokens"]
        tokens = (
            InitialAccessToken(
                id=item["id"],
                name=item["name"],
                uses=item["uses"],
                created_at=datetime.fromisoformat(item["created_at"]),
                expires_at=datetime.fromisoformat(item["expires_at"]),
                digest=bytes.fromhex(item["digest"]),
            )
            for item in stored
        )
        return tuple(sorted((item for item in tokens if self._now < item.expires_at), key=_newest_first, reverse=True))

    def count_uses(self, token: InitialAccessToken) -> int:
        return len(self._records.find_many(_USE, [f"{token.id}/{number}" for number in range(token.uses)]))

    def add_token(self, project: Project, *, name: str, uses: int, days: int) -> tuple[InitialAccessToken, str]:
        """A new token, and its text, which is shown only once. Raises Conflict."""
        tokens, secret = self.list_tokens(project.id), new_token()
        if len(tokens) >= MAX_TOKENS:
            raise Conflict(f"A project has at most {MAX_TOKENS} initial access tokens. Revoke one first.")
        token = InitialAccessToken(
            id=new_token()[:16],
            name=name,
            uses=uses,
            created_at=self._now,
            expires_at=self._now + timedelta(days=days),
            digest=token_digest(secret),
        )
        self._store_tokens(project.id, (*tokens, token))
        self._record("initial_access_token.added", project, token)
        return token, f"{project.id}.{secret}"

    def remove_token(self, project: Project, token_id: str) -> None:
        """Revoke a token. Raises NotFound, Conflict."""
        tokens = self.list_tokens(project.id)
        token = next((item for item in tokens if item.id == token_id), None)
        if token is None:
            raise NotFound("initial access token", token_id)
        self._store_tokens(project.id, tuple(item for item in tokens if item is not token))
        self._record("initial_access_token.removed", project, token)

    def find_token(self, text: str) -> tuple[str, InitialAccessToken] | None:
        """The project id and the token that a client presents; None for an unknown or expired one."""
        project_id, _, secret = text.partition(".")
        tokens = {item.id: item for item in self.list_tokens(project_id)}
        matching = find_matching_digest({id_: item.digest for id_, item in tokens.items()}, secret)
        return None if matching is None else (project_id, tokens[matching])

    def use_token(self, token: InitialAccessToken) -> bool:
        """Use the token once; False if nothing is left of it."""
        return self._take(_USE, token.id, token.uses, expires_at=token.expires_at)

    def _store_tokens(self, project_id: str, tokens: tuple[InitialAccessToken, ...]) -> None:
        value = {
            "tokens": [
                {
                    "id": item.id,
                    "name": item.name,
                    "uses": item.uses,
                    "created_at": item.created_at.isoformat(),
                    "expires_at": item.expires_at.isoformat(),
                    "digest": item.digest.hex(),
                }
                for item in tokens
            ]
        }
        before = self._records.add(_TOKENS, project_id, value)
        if before is not None:
            self._records.replace(before, value)

    def _record(self, event: str, project: Project, token: InitialAccessToken) -> None:
        self._services.audit.record(
            event,
            kind="project",
            id=project.id,
            organization_id=project.organization_id,
            detail={"token_id": token.id, "name": token.name, "uses": token.uses},
        )

    # --- clients ---------------------------------------------------------------------------------------------------

    def take_slot(self, project: Project, client_id: str) -> bool:
        """Count a client, until it is deleted; False if the project has as many as it may."""
        return self._take(_SLOT, project.id, project.registration_limit, application_id=client_id)

    def add_client(self, client_id: str) -> str:
        """The registration access token of a new client."""
        text = new_token()
        self._records.add(_CLIENT, client_id, {"digest": token_digest(text).hex()}, application_id=client_id)
        return text

    def is_client_token(self, client_id: str, text: str) -> bool:
        """True for the client's registration access token. An unknown client takes equal work."""
        record = self._records.find(_CLIENT, client_id)
        digests = {} if record is None else {client_id: bytes.fromhex(record.value["digest"])}
        return find_matching_digest(digests, text) is not None

    def renew_client_token(self, client_id: str, text: str) -> str | None:
        """A new registration access token in place of this one; None if it is not valid any more. Of parallel requests
        one gets it. Raises Conflict for the others."""
        record = self._records.find(_CLIENT, client_id)
        if record is None or not self.is_client_token(client_id, text):
            return None
        renewed = new_token()
        self._records.replace(record, {"digest": token_digest(renewed).hex()})
        return renewed

    def _take(self, kind: str, prefix: str, number: int, **options: Any) -> bool:
        keys = [f"{prefix}/{index}" for index in range(number)]
        found = self._records.find_many(kind, keys)
        return any(self._records.add(kind, key, {}, **options) is None for key in keys if key not in found)


def _newest_first(token: InitialAccessToken) -> tuple[datetime, str]:
    return token.created_at, token.id
