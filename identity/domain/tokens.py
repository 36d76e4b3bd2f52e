"""Access tokens, refresh tokens, and the family of one authorization."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

from identity.domain.applications import ApplicationClient
from identity.domain.authentication import authentication_claims
from identity.domain.consents import Consent
from identity.domain.expirations import NEVER
from identity.domain.users import Subject, TokenFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFamily:
    """All tokens from one authorization of one user for one client.

    A token is live only while its family is: revoking the family also revokes tokens that are being written at that
    moment. ``methods`` are the user's authentication methods at ``authenticated_at`` (RFC 8176), ``acr`` their
    class. The claims are those that the client requested individually (OpenID Connect Core §5.5). ``impersonator_id``
    is the manager who was signed in as the user; then no token outlives ``ends_at``. ``device_address`` is the network
    address of the device that the user signed in on by a code; None for any other sign-in.
    ``resources`` are those that the client named (RFC 8707), to which the audience of its tokens is limited.
    ``provider_id`` is the identity provider whose assertion began the family, with which it ends."""

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
    impersonator_id: str | None = None
    device_address: str | None = None
    resources: tuple[str, ...] | None = None
    provider_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """A stored access token, identified by the SHA-256 of its value.

    ``user_id`` is None if an application acts for itself; ``key_id``, ``secret_id`` or ``federated_credential_id``
    names the credential of a service user, ``client_secret_id`` or again ``federated_credential_id`` that of an
    application acting for itself.
    ``personal_access_token_id`` is set for personal access tokens. ``actors`` are the subjects that act for its
    subject, the current one first.
    ``confirmation`` names the key that the sender has to prove (``confirmation_claim``); None for a bearer token.
    ``ancestors`` are the digests, in hexadecimal, of all access tokens that it was exchanged from (RFC 8693): it is
    live only while each of them is."""

    #: How many access tokens one may be exchanged from, directly or not: each of them is read at each use.
    MAX_ANCESTORS: ClassVar[int] = 16

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
    federated_credential_id: str | None = None
    family_id: str | None = None
    session_id: str | None = None
    revoked_at: datetime | None = None
    actors: tuple[str, ...] = ()
    confirmation: str | None = None
    ancestors: tuple[str, ...] | None = None

    @property
    def lineage(self) -> tuple[str, ...]:
        """The token's digest and its ancestors: the ancestors of a token that is exchanged from it."""
        return (self.digest.hex(), *(self.ancestors or ()))

    @property
    def never_expires(self) -> bool:
        return self.expires_at == NEVER

    def actor_claim(self) -> dict[str, object]:
        """The claim ``act``: the actor and the chain of earlier actors (RFC 8693 §4.1); empty without an actor."""
        return actor_claim(self.actors)


def actor_claim(actors: Iterable[str]) -> dict[str, object]:
    """The claim ``act`` (RFC 8693 §4.1) of these actors, the current one first; empty without any."""
    claims: dict[str, object] = {}
    for actor in reversed(tuple(actors)):
        claims = {"act": {"sub": actor, **claims}}
    return claims


def confirmation_claim(confirmation: str | None) -> dict[str, object]:
    """The claim ``cnf`` (RFC 7800 §3.1) of a confirmation, which is the name of its member and a thumbprint, separated
    by a colon; empty for None."""
    if confirmation is None:
        return {}
    method, _, thumbprint = confirmation.partition(":")
    return {"cnf": {method: thumbprint}}


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshToken:
    """A stored refresh token; ``rotated_at`` is set once it has been exchanged for its successor. ``confirmation`` is
    as in AccessToken."""

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
    confirmation: str | None = None


@dataclass(frozen=True, slots=True)
class PresentedAccessToken:
    """An access token with everything that decides whether it is live: subject, client, family, session. ``claims`` are
    those that may be requested at userinfo beyond the scopes; ``methods``, ``acr`` and ``authenticated_at`` say how and
    when the user authenticated (``TokenFamily``)."""

    token: AccessToken
    subject: Subject | None
    client: ApplicationClient | None
    family_revoked: bool = False
    session_ended: bool = False
    claims: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    acr: str = ""
    authenticated_at: datetime | None = None

    def authentication_claims(self) -> dict[str, object]:
        """``amr``, ``acr`` and ``auth_time``; empty if no user authenticated."""
        if not self.methods or self.authenticated_at is None:
            return {}
        return authentication_claims(self.methods, self.acr, self.authenticated_at)

    def is_live(self, now: datetime) -> bool:
        """True if the token, its family, session, user, organization, application and project all allow it."""
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
    """A refresh token with its family and subject, and whether its session has ended."""

    token: RefreshToken
    family: TokenFamily
    subject: Subject | None
    session_ended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectedDevice:
    """A device on which a user signed in by a code, and the network address that it had then; the id is that of the
    token family."""

    id: str
    address: str
    since: datetime
    last_used_at: datetime


@dataclass(frozen=True, slots=True)
class ConnectedApplication:
    """What an application holds of a user: all its live families together, and the user's consent. ``scope`` is the
    union of their scopes, ``last_used_at`` the last time it got a token or a consent, ``devices`` are the devices among
    them, first one first."""

    client: ApplicationClient
    scope: tuple[str, ...]
    offline: bool
    since: datetime
    last_used_at: datetime
    devices: tuple[ConnectedDevice, ...] = ()


def merge_consent(
    consent: Consent, client: ApplicationClient, connected_application: ConnectedApplication | None
) -> ConnectedApplication:
    """The connection with the user's consent, even if the client holds nothing at present."""
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
    """One connection per client, most recently used first, from families with their client and time of last use. Scopes
    are in the order of the given families."""
    of_client: dict[str, list[tuple[TokenFamily, ApplicationClient, datetime]]] = {}
    for item in families:
        of_client.setdefault(item[1].id, []).append(item)
    applications = [
        ConnectedApplication(
            client=members[0][1],
            scope=tuple(dict.fromkeys(name for family, _, _ in members for name in family.scope)),
            offline=any(family.offline for family, _, _ in members),
            since=min(family.started_at for family, _, _ in members),
            last_used_at=max(used_at for _, _, used_at in members),
            devices=tuple(
                ConnectedDevice(
                    id=family.id, address=family.device_address, since=family.started_at, last_used_at=used_at
                )
                for family, _, used_at in members
                if family.device_address is not None
            ),
        )
        for _, members in sorted(of_client.items())
    ]
    return tuple(sorted(applications, key=lambda connection: connection.last_used_at, reverse=True))
