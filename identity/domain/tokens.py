"""Access tokens, refresh tokens and the family that ties those of one authorization together."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from identity.domain.applications import ApplicationClient
from identity.domain.consents import Consent
from identity.domain.users import Subject, TokenFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFamily:
    """All that came from one authorization of one person for one client.

    A token is live only while its family is: revoking the family also kills members that are being written at
    that very moment. ``methods`` are those by which the person had proved to be it at ``authenticated_at`` (RFC 8176),
    ``acr`` is what they amount to. The claims are those that the client asked for beside scopes (OpenID Connect Core
    §5.5).
    """

    id: str
    user_id: str
    client_id: str
    scope: tuple[str, ...]
    started_at: datetime
    ends_at: datetime
    session_id: str | None = None
    offline: bool = False
    methods: tuple[str, ...] = ()
    acr: str = ""
    authenticated_at: datetime | None = None
    userinfo_claims: tuple[str, ...] = ()
    id_token_claims: tuple[str, ...] = ()
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """An access token as it is recorded, known by the SHA-256 of what its bearer shows.

    ``user_id`` is None where an application acts for itself; ``key_id`` or ``secret_id`` names what a service user
    obtained it with, ``client_secret_id`` what an application obtained its own with. ``personal_access_token_id`` is
    the personal access token whose live form it is. ``actors`` are the subjects of those who act for its subject, the
    present one first.
    """

    id: str
    digest: bytes
    format: TokenFormat
    subject: str
    client_id: str
    scope: tuple[str, ...]
    audience: tuple[str, ...]
    issued_at: datetime
    expires_at: datetime
    user_id: str | None = None
    application_id: str | None = None
    key_id: str | None = None
    secret_id: str | None = None
    client_secret_id: str | None = None
    personal_access_token_id: str | None = None
    family_id: str | None = None
    session_id: str | None = None
    revoked_at: datetime | None = None
    actors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshToken:
    """A refresh token as it is recorded; ``rotated_at`` is set once it has been exchanged for its successor."""

    id: str
    digest: bytes
    family_id: str
    user_id: str
    client_id: str
    scope: tuple[str, ...]
    issued_at: datetime
    expires_at: datetime
    ends_at: datetime
    authenticated_at: datetime
    session_id: str | None = None
    nonce: str | None = None
    predecessor_id: str | None = None
    rotated_at: datetime | None = None
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PresentedAccessToken:
    """An access token with all that decides whether it is live: its subject, its client, its family, its session.

    ``claims`` are those that its bearer may ask for at userinfo beside what its scopes open; ``methods``, ``acr`` and
    ``authenticated_at`` tell how and when the person had proved to be it (``TokenFamily``).
    """

    token: AccessToken
    subject: Subject | None
    client: ApplicationClient | None
    family_revoked: bool = False
    session_ended: bool = False
    claims: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    acr: str = ""
    authenticated_at: datetime | None = None

    def is_live(self, now: datetime) -> bool:
        """True if neither token, family, session, user, organization, application nor project stands against it."""
        token = self.token
        return (
            token.revoked_at is None
            and now < token.expires_at
            and not self.family_revoked
            and not self.session_ended
            and (token.user_id is None or (self.subject is not None and self.subject.is_active))
            and (token.application_id is None or (self.client is not None and self.client.is_active))
        )


@dataclass(frozen=True, slots=True)
class PresentedRefreshToken:
    """A refresh token together with its family, whom it is about, and whether its session has ended."""

    token: RefreshToken
    family: TokenFamily
    subject: Subject | None
    session_ended: bool = False


@dataclass(frozen=True, slots=True)
class ConnectedApplication:
    """What one application holds of a person: all its live families taken together, and what the person agreed to.

    ``scope`` holds every word that any of them has, ``last_used_at`` is when it last got a token or a consent.
    """

    client: ApplicationClient
    scope: tuple[str, ...]
    offline: bool
    since: datetime
    last_used_at: datetime


def merge_consent(
    consent: Consent, client: ApplicationClient, connected_application: ConnectedApplication | None
) -> ConnectedApplication:
    """The connection with what the person agreed to, whether or not the client holds anything right now."""
    at = consent.given_at
    if connected_application is None:
        return ConnectedApplication(client=client, scope=consent.scope, offline=False, since=at, last_used_at=at)
    return replace(
        connected_application,
        scope=tuple(dict.fromkeys((*connected_application.scope, *consent.scope))),
        since=min(connected_application.since, at),
        last_used_at=max(connected_application.last_used_at, at),
    )


def connected_applications(
    families: Iterable[tuple[TokenFamily, ApplicationClient, datetime]],
) -> tuple[ConnectedApplication, ...]:
    """One connection per client, last used first, of families with their client and the moment of their last use.

    Words of scopes come in the order of the families given.
    """
    of_client: dict[str, list[tuple[TokenFamily, ApplicationClient, datetime]]] = {}
    for item in families:
        of_client.setdefault(item[1].id, []).append(item)
    applications = [
        ConnectedApplication(
            client=members[0][1],
            scope=tuple(dict.fromkeys(scope_name for family, _, _ in members for scope_name in family.scope)),
            offline=any(family.offline for family, _, _ in members),
            since=min(family.started_at for family, _, _ in members),
            last_used_at=max(used_at for _, _, used_at in members),
        )
        for _, members in sorted(of_client.items())
    ]
    return tuple(sorted(applications, key=lambda connection: connection.last_used_at, reverse=True))
