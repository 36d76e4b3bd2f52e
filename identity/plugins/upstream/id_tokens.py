"""Verification of upstream ID tokens (OpenID Connect Core §3.1.3.7)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from identity.api.crypto import (
    InvalidTokenSignature,
    JwkPublicKey,
    MalformedToken,
    UnverifiedToken,
    constant_time_equal,
)
from identity.plugins.upstream.http_client import ProviderResponseError
from identity.plugins.upstream.provider_metadata import ProviderMetadata

#: Allowed clock difference, and the maximum age of a new token.
_CLOCK_SKEW = timedelta(seconds=60)
_MAX_AGE = timedelta(minutes=10)
_LONGEST = 32 * 1024
_LONGEST_SUBJECT = 255

#: Returns the provider's keys; True fetches them again because a key is missing.
KeyFetcher = Callable[[bool], Sequence[JwkPublicKey]]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdTokenExpectations:
    """The expected audience and nonce; with ``since``, the earliest authentication time."""

    client_id: str
    nonce: str
    now: datetime
    since: datetime | None = None


def verify_id_token(
    text: object, metadata: ProviderMetadata, keys: KeyFetcher, expected: IdTokenExpectations
) -> dict[str, Any]:
    """The verified claims of a token that the provider signed for this request. Raises ProviderResponseError."""
    if not isinstance(text, str):
        raise ProviderResponseError("there is no ID token")
    try:
        token = UnverifiedToken.parse(text, max_length=_LONGEST)
        algorithm = token.header["alg"]
        if algorithm not in metadata.algorithms:
            raise ProviderResponseError("the ID token is signed otherwise than the provider says")
        claims = token.verify_with_jwk(_select_key(token.header, keys, algorithm), algorithm=algorithm)
    except MalformedToken as problem:
        raise ProviderResponseError(f"the ID token is no JWT that is read here: {problem.reason}") from None
    except InvalidTokenSignature:
        raise ProviderResponseError("the ID token's signature does not hold") from None
    _verify_claims(claims, token.header, metadata, expected)
    return claims


def _select_key(header: Mapping[str, Any], keys: KeyFetcher, algorithm: str) -> JwkPublicKey:
    for missing in (False, True):
        fitting = [key for key in keys(missing) if algorithm in key.algorithms]
        key_id = header.get("kid")
        jwk_public_keys = (
            fitting if key_id is None else [jwk_public_key for jwk_public_key in fitting if jwk_public_key.id == key_id]
        )
        # Without a key id the key set must have a single key (OpenID Connect Core §10.1).
        if len(jwk_public_keys) == 1:
            return jwk_public_keys[0]
    raise ProviderResponseError("the ID token is signed with a key that the provider does not show")


def _verify_claims(
    claims: Mapping[str, Any], header: Mapping[str, Any], metadata: ProviderMetadata, expected: IdTokenExpectations
) -> None:
    if str(header.get("typ", "JWT")).upper() != "JWT":
        raise ProviderResponseError("the token is no ID token")
    if claims.get("iss") != metadata.issuer:
        raise ProviderResponseError("the ID token is of another issuer")
    audience = claims.get("aud")
    members = [audience] if isinstance(audience, str) else audience
    if not isinstance(members, list) or expected.client_id not in members:
        raise ProviderResponseError("the ID token is for somebody else")
    authorized = claims.get("azp", expected.client_id if len(members) == 1 else None)
    if authorized != expected.client_id:
        raise ProviderResponseError("the ID token was made for somebody else")
    nonce = claims.get("nonce")
    if not isinstance(nonce, str) or not constant_time_equal(
        nonce.encode("utf-8", "surrogatepass"), expected.nonce.encode()
    ):
        raise ProviderResponseError("the ID token belongs to another request")
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= _LONGEST_SUBJECT or not subject.isprintable():
        raise ProviderResponseError("the ID token names nobody")
    _verify_times(claims, expected)


def _verify_times(claims: Mapping[str, Any], expected: IdTokenExpectations) -> None:
    now, skew = expected.now.timestamp(), _CLOCK_SKEW.total_seconds()
    issued_at, ends_at = _read_numeric_date(claims, "iat"), _read_numeric_date(claims, "exp")
    if issued_at is None or ends_at is None:
        raise ProviderResponseError("the ID token does not say when it was made and ends")
    if ends_at <= now - skew:
        raise ProviderResponseError("the ID token has expired")
    if not now - _MAX_AGE.total_seconds() <= issued_at <= now + skew:
        raise ProviderResponseError("the ID token was not made just now")
    begins_at = _read_numeric_date(claims, "nbf")
    if "nbf" in claims and (begins_at is None or begins_at > now + skew):
        raise ProviderResponseError("the ID token does not count yet")
    authenticated_at = _read_numeric_date(claims, "auth_time")
    if "auth_time" in claims and authenticated_at is None:
        raise ProviderResponseError("the ID token does not say when somebody signed in")
    if (
        expected.since is not None
        and authenticated_at is not None
        and not is_recently_authenticated(claims, expected.since)
    ):
        raise ProviderResponseError("nobody has signed in at the provider just now")


def is_recently_authenticated(claims: Mapping[str, Any], since: datetime) -> bool:
    """True if the user authenticated since then (``auth_time``)."""
    authenticated_at = _read_numeric_date(claims, "auth_time")
    return authenticated_at is not None and authenticated_at >= since.timestamp() - _CLOCK_SKEW.total_seconds()


def _read_numeric_date(claims: Mapping[str, Any], name: str) -> int | None:
    value = claims.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def verify_access_token_hash(claims: Mapping[str, Any], access_token: str, algorithm: str) -> None:
    """Raise ProviderResponseError if the ID token belongs to another access token (§3.1.3.6, §3.1.3.8)."""
    expected = claims.get("at_hash")
    if expected is None:
        return
    actual = UnverifiedToken.left_half_hash(access_token, algorithm) if access_token.isascii() else ""
    if not isinstance(expected, str) or not constant_time_equal(
        actual.encode(), expected.encode("utf-8", "surrogatepass")
    ):
        raise ProviderResponseError("the ID token was made with another access token")
