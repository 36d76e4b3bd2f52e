"""Tokens, the checks that a client makes, and what a valid token says."""

import base64
import hashlib
import hmac
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeGuard

from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jws import JWSRegistry

from identity_client.errors import InvalidToken, MissingRole
from identity_client.issuer import ED25519_ALGORITHMS, Issuer, Published

NAMESPACE = "urn:service:iam"
#: The longest token that is parsed, in characters.
MAX_LENGTH = 16384
#: How far the clocks of service and application may differ, in seconds.
LEEWAY = 30

_ACCESS_TOKEN_TYPES = ("at+jwt", "application/at+jwt")
_ID_TOKEN_TYPES = (None, "jwt", "application/jwt")


class _Registry(JWSRegistry):
    """joserfc's algorithms, with ``EdDSA`` for Ed25519 alone, about whose name it would warn."""

    # As in the base class.
    algorithms = {**JWSRegistry.algorithms, "EdDSA": JWSRegistry.algorithms["Ed25519"]}  # noqa: RUF012


@dataclass(frozen=True)
class RoleClaims:
    """The roles of a user in one project, each with the organizations that granted it."""

    claims: Mapping[str, Any] = field(repr=False)
    project_id: str
    namespace: str = NAMESPACE

    def organizations(self, role: str) -> frozenset[str]:
        """The ids of the organizations that granted the role."""
        granted = self._granted().get(role)
        return frozenset(granted) if isinstance(granted, Mapping) else frozenset()

    @property
    def roles(self) -> frozenset[str]:
        """The keys of the roles. Several organizations may use the project: ``has_role`` distinguishes them."""
        return frozenset(role for role in self._granted() if self.organizations(role))

    def has_role(self, *roles: str, organization: str | None = None) -> bool:
        """True if the user has one of the roles, by a grant of the organization if one is named."""
        return any(
            organization in granted if organization is not None else bool(granted)
            for granted in map(self.organizations, roles)
        )

    def _granted(self) -> Mapping[str, Any]:
        # Never the claim without an id: in a service user's token it covers the roles of all projects.
        granted = self.claims.get(f"{self.namespace}:org:project:{self.project_id}:roles")
        return granted if self.project_id and isinstance(granted, Mapping) else {}


@dataclass(frozen=True)
class AccessToken(RoleClaims):
    """A valid access token for this API."""

    @property
    def subject(self) -> str:
        """The id of the user, or of the application if the token has no user."""
        return str(self.claims["sub"])

    @property
    def username(self) -> str | None:
        """The login name, where the service includes it."""
        name = self.claims.get("username", self.claims.get("preferred_username"))
        return name if isinstance(name, str) else None

    @property
    def scopes(self) -> frozenset[str]:
        scope = self.claims.get("scope")
        return frozenset(scope.split()) if isinstance(scope, str) else frozenset()

    @property
    def expires_at(self) -> datetime:
        return datetime.fromtimestamp(self.claims["exp"], UTC)

    def require_role(self, *roles: str, organization: str | None = None) -> None:
        """Raises MissingRole unless the user has one of the roles."""
        if not self.has_role(*roles, organization=organization):
            raise MissingRole(f"{self.subject} has none of the roles {', '.join(roles)}")


def is_jwt(token: str) -> bool:
    """True if it looks like one; opaque tokens have no dots."""
    return token.count(".") == 2


def key_id_of(token: str) -> str:
    """The ``kid`` in the header, which anybody could have written. Raises InvalidToken."""
    if len(token) > MAX_LENGTH:
        raise InvalidToken(f"longer than {MAX_LENGTH} characters")
    try:
        key_id = jws.extract_compact(token.encode("ascii")).headers().get("kid")
    except (JoseError, ValueError, TypeError, RecursionError):
        raise InvalidToken("not a signed JWT") from None
    if not isinstance(key_id, str):
        raise InvalidToken("the token names no key")
    return key_id


def verify_access_token(token: str, issuer: Issuer, published: Published, audience: str) -> dict[str, Any]:
    """The claims of a JWT access token (RFC 9068 §4). Raises InvalidToken."""
    header, claims = _verify_signature(token, issuer, published)
    if _type_of(header) not in _ACCESS_TOKEN_TYPES:
        raise InvalidToken("not an access token")
    check_claims(claims, issuer.url, audience)
    return claims


def verify_id_token(
    token: str, issuer: Issuer, published: Published, client_id: str, *, nonce: str, access_token: str
) -> dict[str, Any]:
    """The claims of an ID token (OpenID Connect Core §3.1.3.7). Raises InvalidToken."""
    header, claims = _verify_signature(token, issuer, published)
    if _type_of(header) not in _ID_TOKEN_TYPES:
        raise InvalidToken("not an ID token")
    check_claims(claims, issuer.url, client_id)
    several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
    if claims.get("azp", None if several else client_id) != client_id:
        raise InvalidToken("issued to another client")
    if not is_number(claims.get("iat")):
        raise InvalidToken("iat is missing")
    if not _equal(claims.get("nonce"), nonce):
        raise InvalidToken("the nonce is not that of this sign-in")
    if "at_hash" in claims and not _equal(claims["at_hash"], _left_half_hash(access_token, header["alg"])):
        raise InvalidToken("issued with another access token")
    return claims


def check_claims(claims: Mapping[str, Any], issuer: str, audience: str) -> None:
    """Check issuer, audience, subject and times, and that the token is not bound to a key: this client cannot tell
    whether the sender has it. Raises InvalidToken."""
    now, recipients = time.time(), claims.get("aud")
    if claims.get("iss") != issuer:
        raise InvalidToken("of another issuer")
    if not audience or audience not in (recipients if isinstance(recipients, list) else [recipients]):
        raise InvalidToken("meant for others")
    if not isinstance(claims.get("sub"), str) or not claims["sub"]:
        raise InvalidToken("sub is missing")
    if claims.get("cnf") is not None:
        raise InvalidToken("bound to a key of the sender")
    if not is_number(claims.get("exp")) or claims["exp"] <= now - LEEWAY:
        raise InvalidToken("expired")
    for name in ("iat", "nbf"):
        if name in claims and (not is_number(claims[name]) or claims[name] > now + LEEWAY):
            raise InvalidToken(f"{name} is in the future")


def is_number(value: object) -> TypeGuard[int | float]:
    """True for a finite number; JSON of Python also knows NaN and infinity."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _verify_signature(token: str, issuer: Issuer, published: Published) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and claims."""
    key = published.keys.get(key_id_of(token))
    if key is None:
        raise InvalidToken("signed with an unknown key")
    try:
        verified = jwt.decode(token, key, registry=_Registry(algorithms=issuer.algorithms))
    except (JoseError, ValueError, TypeError, RecursionError):
        raise InvalidToken("the signature does not match") from None
    # Extensions that change how a token is read; the service uses none (RFC 7515 §4.1.11).
    if "crit" in verified.header or "b64" in verified.header or key.get("alg") not in (None, verified.header["alg"]):
        raise InvalidToken("the header has parameters that are not accepted")
    return verified.header, verified.claims


def _type_of(header: Mapping[str, Any]) -> str | None:
    return None if "typ" not in header else str(header["typ"]).lower()


def _equal(value: object, expected: str) -> bool:
    return isinstance(value, str) and hmac.compare_digest(value.encode(), expected.encode())


def _left_half_hash(value: str, algorithm: str) -> str:
    # Ed25519 uses SHA-512 (RFC 8032 §5.1).
    name = "sha512" if algorithm in ED25519_ALGORITHMS else f"sha{algorithm[-3:]}"
    digest = hashlib.new(name, value.encode()).digest()
    return base64.urlsafe_b64encode(digest[: len(digest) // 2]).rstrip(b"=").decode()
