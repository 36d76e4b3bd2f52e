"""Demonstrating Proof of Possession (RFC 9449): tokens bound to a key that the client proves with each request.

A token request::

    POST /oauth/v2/token
    DPoP: eyJ…
    Content-Type: application/x-www-form-urlencoded

    grant_type=authorization_code&code=…
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar
from urllib.parse import urlsplit

from identity.api.crypto import (
    InvalidKey,
    InvalidTokenSignature,
    JwkPublicKey,
    MalformedToken,
    SignatureAlgorithm,
    UnverifiedToken,
    constant_time_equal,
    encode_base64url,
    jwk_thumbprint,
)
from identity.api.endpoints import Context, InvalidRequest, OAuthError, ProtocolRequest
from identity.api.grants import SenderConstraint
from identity.api.plugins import duration, hookimpl, setting

ALGORITHMS = SignatureAlgorithm.names()

_HEADER = "dpop"
_MAX_JTI_LENGTH = 256
_PURPOSE = "dpop nonce"
_THUMBPRINT = re.compile(r"[A-Za-z0-9_-]{43}\Z")


class InvalidDpopProof(OAuthError):
    """The proof is missing or invalid (RFC 9449 §5, §7.1)."""

    error = "invalid_dpop_proof"

    def __init__(self, description: str, *, nonce: str, at_resource: bool) -> None:
        super().__init__(description)
        self.headers = {"DPoP-Nonce": nonce}
        if at_resource:
            self.status = 401
            self.headers["WWW-Authenticate"] = (
                f'DPoP error="{self.error}", error_description="{description}", algs="{" ".join(ALGORITHMS)}"'
            )


class UseDpopNonce(InvalidDpopProof):
    """The proof needs the nonce in the header DPoP-Nonce (RFC 9449 §8, §9)."""

    error = "use_dpop_nonce"


class DpopConstraint(SenderConstraint):
    """A proof is a JWT that the client signs for one request. Each counts once."""

    name = "dpop"
    method = "jkt"
    token_type = "DPoP"  # noqa: S105 - a word of the protocol
    parameter = "dpop_jkt"
    discovery_members: ClassVar[Mapping[str, object]] = {"dpop_signing_alg_values_supported": list(ALGORITHMS)}

    def __init__(self, plugin: "DpopPlugin") -> None:
        self._plugin = plugin

    def is_used_in(self, request: ProtocolRequest) -> bool:
        """True for a DPoP header, well-formed or not."""
        return _HEADER in request.headers

    def proof_algorithm(self, request: ProtocolRequest) -> str | None:
        """``alg`` of the proof."""
        algorithm = UnverifiedToken.parse(request.headers[_HEADER], has_embedded_key=True).header["alg"]
        return str(algorithm)

    def thumbprint_from_parameter(self, value: str) -> str:
        """The thumbprint itself. Raises InvalidRequest."""
        if not _THUMBPRINT.match(value):
            raise InvalidRequest("dpop_jkt must be 43 characters of base64url")
        return value

    def verify(self, request: ProtocolRequest, context: Context, *, access_token: str | None = None) -> str:
        """The thumbprint of the proof's key (RFC 9449 §4.3). Raises InvalidDpopProof, UseDpopNonce."""
        proof = request.headers.get(_HEADER, "")
        at_resource = access_token is not None
        try:
            thumbprint, claims = _verify_signature(proof)
            _check_claims(claims, request, context, access_token, self._plugin.settings)
            issued_at = self._check_nonce(claims, context)
            self._use(thumbprint, claims, context)
        except _NonceMissing as problem:
            raise UseDpopNonce(str(problem), nonce=self._new_nonce(context), at_resource=at_resource) from None
        except _Refused as problem:
            raise InvalidDpopProof(str(problem), nonce=self._new_nonce(context), at_resource=at_resource) from None
        if issued_at is None or 2 * (context.now.timestamp() - issued_at) >= self._nonce_seconds:
            context.response_headers["DPoP-Nonce"] = self._new_nonce(context)
        return thumbprint

    @property
    def _nonce_seconds(self) -> float:
        return self._plugin.settings.nonce_lifetime.total_seconds()

    def _new_nonce(self, context: Context) -> str:
        content = {"iat": int(context.now.timestamp())}
        return context.services.form_tokens.issue(_PURPOSE, content, self._plugin.settings.nonce_lifetime)

    def _check_nonce(self, claims: Mapping[str, Any], context: Context) -> int | None:
        """When the proof's nonce was issued; None without one. Raises _NonceMissing."""
        sent = claims.get("nonce")
        if sent is None and not self._plugin.settings.require_nonce:
            return None
        content = context.services.form_tokens.read(_PURPOSE, sent) if isinstance(sent, str) else None
        if content is None:
            raise _NonceMissing("the DPoP proof needs the nonce of the header DPoP-Nonce")
        return int(content["iat"])

    def _use(self, thumbprint: str, claims: Mapping[str, Any], context: Context) -> None:
        """Record the proof, so that it counts once on all nodes, even if the request fails."""
        window = self._plugin.settings.max_proof_age + 2 * context.settings.clock_skew
        expires_at = datetime.fromtimestamp(claims["iat"], UTC) + window
        if not context.services.assertions.use_once(f"dpop {thumbprint}", claims["jti"], expires_at):
            raise _Refused("the jti of the DPoP proof was used before")


class _Refused(Exception):
    """Why a proof is refused."""


class _NonceMissing(_Refused):
    """The proof has no nonce, or an expired one."""


def _verify_signature(proof: str) -> tuple[str, dict[str, Any]]:
    """The thumbprint of the proof's key, and its claims. Raises _Refused."""
    try:
        token = UnverifiedToken.parse(proof, has_embedded_key=True)
        if token.header.get("typ") != "dpop+jwt":
            raise _Refused("typ of the DPoP proof must be dpop+jwt")
        algorithm = token.header["alg"]
        if algorithm not in ALGORITHMS:
            raise _Refused(f"alg of the DPoP proof must be one of {', '.join(ALGORITHMS)}")
        key = JwkPublicKey.parse(token.header["jwk"])
        if algorithm not in key.algorithms:
            raise _Refused("alg of the DPoP proof does not fit its key")
        return jwk_thumbprint(token.header["jwk"]), token.verify_with_jwk(key, algorithm=algorithm)
    except (MalformedToken, InvalidKey, InvalidTokenSignature):
        raise _Refused("the DPoP proof is not a JWT with the public key that signed it") from None


def _check_claims(
    claims: Mapping[str, Any],
    request: ProtocolRequest,
    context: Context,
    access_token: str | None,
    settings: "DpopPlugin.Settings",
) -> None:
    """Raise _Refused unless the proof is for this request (RFC 9449 §4.3)."""
    jti, issued_at, now = claims.get("jti"), claims.get("iat"), int(context.now.timestamp())
    if not isinstance(jti, str) or not 0 < len(jti) <= _MAX_JTI_LENGTH:
        raise _Refused(f"jti of the DPoP proof must be a text of 1 to {_MAX_JTI_LENGTH} characters")
    if claims.get("htm") != request.method:
        raise _Refused("htm of the DPoP proof must be the method of the request")
    if _normalized(claims.get("htu")) not in _addresses(request, context):
        raise _Refused("htu of the DPoP proof must be the address of the request")
    if isinstance(issued_at, bool) or not isinstance(issued_at, int):
        raise _Refused("iat of the DPoP proof must be a whole number of seconds since 1970 (UTC)")
    skew = int(context.settings.clock_skew.total_seconds())
    if not now - int(settings.max_proof_age.total_seconds()) - skew <= issued_at <= now + skew:
        raise _Refused("iat of the DPoP proof is too old, or in the future")
    if access_token is None:
        return
    expected = encode_base64url(hashlib.sha256(access_token.encode("ascii", "replace")).digest())
    sent = claims.get("ath")
    if not isinstance(sent, str) or not constant_time_equal(sent.encode(), expected.encode()):
        raise _Refused("ath of the DPoP proof must be the hash of the access token")


def _addresses(request: ProtocolRequest, context: Context) -> set[object]:
    """The addresses of the request at the service's hosts, normalized."""
    settings = context.settings
    hosts = {settings.issuer_url, settings.base_url, settings.login_url}
    return {_normalized(host.rstrip("/") + request.path) for host in hosts}


def _normalized(address: object) -> object:
    """The parts of an address that count (RFC 3986 §6.2), without query and fragment; None for no address."""
    if not isinstance(address, str) or len(address) > 2000:
        return None
    try:
        parts = urlsplit(address)
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
        return parts.scheme, parts.hostname, port, parts.path or "/"
    except ValueError:
        return None


class DpopPlugin:
    """Sender-constrained tokens with DPoP (RFC 9449)."""

    hookspecs = 1

    @dataclass(frozen=True)
    class Settings:
        """Which proofs count."""

        require_nonce: bool = setting("Whether each proof needs a recent nonce of the service.", default=True)
        nonce_lifetime: timedelta = duration("How long a nonce is valid.", "5m", at_least="10s", at_most="1h")
        max_proof_age: timedelta = duration("The maximum age of a proof, by its iat.", "60s", at_most="10m")

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_sender_constraints(self) -> Iterable[SenderConstraint]:
        """DPoP."""
        return [DpopConstraint(self)]
