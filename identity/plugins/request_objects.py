"""Signed authorization requests (RFC 9101, OpenID Connect Core §6): the parameters are a JWT of the application.

A request::

    GET /oauth/v2/authorize?client_id=…&request=eyJ…

The JWT can also be pushed (RFC 9126 §3).
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from identity.api.crypto import (
    InvalidKey,
    InvalidTokenSignature,
    MalformedToken,
    SignatureAlgorithm,
    UnverifiedToken,
    encode_base64url,
)
from identity.api.endpoints import (
    AuthorizationRequestSource,
    Context,
    InvalidRequestObject,
    InvalidRequestUri,
    LoadedRequest,
    Parameters,
    RequestForm,
)
from identity.api.entities import ApplicationClient
from identity.api.plugins import hookimpl, setting

#: Without ``none``: anyone could have written an unsigned request.
ALGORITHMS = SignatureAlgorithm.names()

_MAX_LENGTH = 16 * 1024
#: The longest validity (FAPI 2.0 Message Signing §5.3.1).
_MAX_LIFETIME = timedelta(hours=1)
_TYPES = frozenset({None, "oauth-authz-req+jwt", "JWT", "jwt"})
#: Claims of the JWT that are no parameters (RFC 9101 §4).
_JWT_CLAIMS = frozenset({"iss", "aud", "exp", "nbf", "iat", "jti", "sub"})


class RequestObjectSource(AuthorizationRequestSource):
    """A request object by value."""

    name = "signed"
    parameter = "request"
    discovery_members: ClassVar[Mapping[str, object]] = {
        "request_parameter_supported": True,
        "request_object_signing_alg_values_supported": list(ALGORITHMS),
    }

    def accepts(self, value: str, client: ApplicationClient) -> bool:
        """Any of an application that has keys."""
        return bool(client.application.jwks or client.application.jwks_uri)

    def load(self, value: str, client: ApplicationClient, context: Context) -> LoadedRequest:
        """The claims of a request object that the client has signed. Raises InvalidRequestObject."""
        return _load(value, client, context)


class ReferencedRequestObjectSource(AuthorizationRequestSource):
    """A request object at an address that the application registered (OpenID Connect Core §6.2, RFC 9101 §5.2).

    What could an attacker gain? A request to an address that a manager registered, as often as its cache allows, under
    the rules of outbound requests: no other address is fetched, and nothing of the response is shown."""

    name = "referenced"
    parameter = "request_uri"
    discovery_members: ClassVar[Mapping[str, object]] = {
        "request_uri_parameter_supported": True,
        "require_request_uri_registration": True,
    }

    def accepts(self, value: str, client: ApplicationClient) -> bool:
        """The registered addresses of an application that has keys."""
        has_keys = bool(client.application.jwks or client.application.jwks_uri)
        return has_keys and client.application.has_request_uri(value)

    def load(self, value: str, client: ApplicationClient, context: Context) -> LoadedRequest:
        """The claims of the request object at the address. Raises InvalidRequestUri, InvalidRequestObject."""
        body = context.services.read_document(value, client.responsible_organization_id, is_fresh=False)
        if body is None:
            raise InvalidRequestUri("the request object cannot be fetched")
        digest = encode_base64url(hashlib.sha256(body).digest())
        if value.partition("#")[2] not in ("", digest):
            raise InvalidRequestUri("the fragment of request_uri is not the hash of the request object")
        return _load(body.decode("ascii", "replace").strip(), client, context)


def _load(text: str, client: ApplicationClient, context: Context) -> LoadedRequest:
    try:
        claims = _verify(text, client, context)
    except (MalformedToken, InvalidTokenSignature, InvalidKey):
        raise InvalidRequestObject("the request object is not a JWT that a key of the application signed") from None
    _check_claims(claims, client, context)
    return LoadedRequest(_parameters(claims), frozenset({RequestForm.SIGNED}))


def _verify(text: str, client: ApplicationClient, context: Context) -> Mapping[str, Any]:
    token = UnverifiedToken.parse(text, max_length=_MAX_LENGTH)
    application, algorithm = client.application, token.header["alg"]
    allowed = [
        name
        for name in ALGORITHMS
        if application.request_object_signing_alg in ("", name) and application.allows_algorithm(name)
    ]
    if algorithm not in allowed:
        names = ", ".join(allowed)
        raise InvalidRequestObject(f"alg of the request object must be one of {names}")
    if token.header.get("typ") not in _TYPES:
        raise InvalidRequestObject("typ of the request object must be oauth-authz-req+jwt")
    key = context.services.assertions.find_client_key(token.header, client)
    if key is None:
        raise InvalidKey("the application has no key of this kid and alg")
    return token.verify_with_jwk(key, algorithm=algorithm)


def _check_claims(claims: Mapping[str, Any], client: ApplicationClient, context: Context) -> None:
    """Raise InvalidRequestObject unless the client made the request object for this service, for now."""
    audience, now = claims.get("aud"), int(context.now.timestamp())
    skew = int(context.settings.clock_skew.total_seconds())
    longest = int(_MAX_LIFETIME.total_seconds())
    if claims.get("iss") != client.id:
        raise InvalidRequestObject("iss of the request object must be the client_id")
    if context.issuer not in (audience if isinstance(audience, list) else (audience,)):
        raise InvalidRequestObject(f"aud of the request object must be {context.issuer}")
    expires_at = _read_seconds(claims, "exp")
    needs_beginning = client.application.security_profile is not None
    begins_at = _read_seconds(claims, "nbf") if "nbf" in claims or needs_beginning else now
    if expires_at <= now - skew:
        raise InvalidRequestObject("the request object has expired")
    if begins_at > now + skew:
        raise InvalidRequestObject("nbf of the request object is in the future")
    latest = begins_at + longest if needs_beginning else now + longest + skew
    if expires_at > latest or begins_at < now - longest - skew:
        raise InvalidRequestObject(f"the request object must be valid for at most {longest} s")


def _read_seconds(claims: Mapping[str, Any], name: str) -> int:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidRequestObject(f"{name} of the request object must be a whole number of seconds since 1970 (UTC)")
    return value


def _parameters(claims: Mapping[str, Any]) -> Parameters:
    """The parameters in the claims: numbers and objects as text. Raises InvalidRequestObject."""
    values: dict[str, str] = {}
    repeated: dict[str, tuple[str, ...]] = {}
    for name, value in claims.items():
        if name in ("request", "request_uri"):
            raise InvalidRequestObject("a request object cannot contain another")
        if name in _JWT_CLAIMS or value in ("", None):
            continue
        if isinstance(value, str):
            values[name] = value
        elif isinstance(value, dict) or (isinstance(value, int) and not isinstance(value, bool)):
            values[name] = json.dumps(value)
        elif isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            repeated[name] = tuple(value)
        else:
            raise InvalidRequestObject("a claim of the request object is no parameter")
    values |= {name: items[0] for name, items in repeated.items() if len(items) == 1}
    return Parameters(values, {name: items for name, items in repeated.items() if len(items) > 1})


class RequestObjectsPlugin:
    """Signed authorization requests (RFC 9101)."""

    hookspecs = 1

    @dataclass(frozen=True)
    class Settings:
        """Where request objects may be."""

        by_reference: bool = setting(
            "Whether the service fetches request objects from addresses that applications registered.", default=False
        )

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_authorization_request_sources(self) -> Iterable[AuthorizationRequestSource]:
        """Request objects by value, and by reference if that is switched on."""
        return [RequestObjectSource(), *([ReferencedRequestObjectSource()] if self.settings.by_reference else [])]
