"""Requests to the service and to node-oidc-provider, prepared before they are sent: preparing them is not measured."""

import json
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, cycle, islice
from urllib.parse import urlencode

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from benchmarks.load_generator import ExpectedBodies
from identity.testing.jwt_assertions import assertion_claims, pkce_challenge, sign_assertion

AUTHORIZE = "/oauth/v2/authorize"
DISCOVERY = "/.well-known/openid-configuration"
REDIRECT_URI = "https://app.example/callback"
VERIFIER = "a-code-verifier-of-43-characters-or-more-0123456789"
VISITORS_PASSWORD = "a password of the visitor's own"  # noqa: S105 - of a database that is thrown away
SCOPE = "openid profile"
OWN_AUDIENCE = "urn:service:iam:org:project:id:service:aud"

_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_CLIENT_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_CODE = re.compile(rb"[?&]code=([^&]+)")


@dataclass(frozen=True)
class ProviderEndpoints:
    """The paths of a provider, and the fields of its token request before the assertion, which comes last."""

    jwks: str = "/oauth/v2/keys"
    token: str = "/oauth/v2/token"  # noqa: S105 - an address
    userinfo: str = "/oauth/v2/userinfo"
    introspection: str = "/oauth/v2/introspect"
    authorize: str = AUTHORIZE
    assertion_grant: Mapping[str, str] = field(default_factory=lambda: {"grant_type": _JWT_BEARER})
    assertion: str = "assertion"


NODE_ENDPOINTS = ProviderEndpoints(
    jwks="/jwks",
    token="/token",  # noqa: S106 - an address
    userinfo="/me",
    introspection="/token/introspection",
    authorize="/auth",
    assertion_grant={"grant_type": "urn:example:service-token", "client_assertion_type": _CLIENT_ASSERTION},
    assertion="client_assertion",
)


@dataclass(frozen=True)
class AssertionSigner:
    """A service user, or client, that requests tokens with assertions; the private key is PEM."""

    user_id: str
    key_id: str
    key: str = field(repr=False)


@dataclass(frozen=True)
class SignedInVisitor:
    """A signed-in person, and the parameters and Basic credentials of the application."""

    cookie: str = field(repr=False)
    authorization: dict[str, str]
    client: str = field(repr=False)
    login_name: str = ""


@dataclass(frozen=True)
class RequestFixtures:
    """Data for requests. ``introspection_credentials`` are Basic credentials; ``pending_sign_ins`` are pairs of path
    and cookie.
    """

    issuer: str
    host: str
    opaque: AssertionSigner
    jwt: AssertionSigner
    introspection_credentials: str = field(repr=False)
    visitor: SignedInVisitor
    pending_sign_ins: Sequence[tuple[str, str]] = field(default=(), repr=False)
    endpoints: ProviderEndpoints = ProviderEndpoints()


class RequestCase:
    """A kind of request; ``expected`` is what valid responses contain, by status.

    ``make`` builds the requests from responses of ``before``. Each of those can be used once, and unused ones
    are dropped when the next responses arrive. A case with ``feeds_itself`` also uses its own responses.
    """

    def __init__(
        self,
        name: str,
        requests: Iterator[bytes] = iter(()),  # noqa: B008 - empty for ever
        *,
        expected: ExpectedBodies,
        before: "RequestCase | None" = None,
        make: Callable[[bytes], bytes] | None = None,
        feeds_itself: bool = False,
    ) -> None:
        self.name, self.expected, self.source_case = name, expected, before
        self._requests = requests
        self._make = make
        self._next: list[RequestCase] = [self] if feeds_itself else []
        if before is not None:
            before._next.append(self)

    @property
    def stores_responses(self) -> bool:
        """True if requests are built from its responses."""
        return bool(self._next)

    def next_requests(self, number: int) -> list[bytes]:
        return list(islice(self._requests, number))

    def return_requests(self, requests: Sequence[bytes]) -> None:
        """Put back requests that were not sent."""
        self._requests = chain(requests, self._requests)

    def feed_responses(self, contents: Sequence[bytes]) -> None:
        """Build the next requests from these responses."""
        for case in self._next:
            assert case._make is not None  # noqa: S101 - it has a case before
            case._requests = iter([case._make(content) for content in contents])


def create_token_case(known: RequestFixtures) -> RequestCase:
    """Obtains the tokens for userinfo and introspection."""
    scope = SCOPE if known.endpoints is NODE_ENDPOINTS else f"{SCOPE} {OWN_AUDIENCE}"
    return RequestCase("tokens", _assertion_requests(known, known.opaque, scope), expected=_ID_TOKEN)


def create_cases(known: RequestFixtures, tokens: Sequence[str]) -> list[RequestCase]:
    """Each kind of request; these tokens are used in turn. Token requests have a jti, so that both sides record it."""
    host, paths, visitor = known.host, known.endpoints, known.visitor
    basic, asking = f"Basic {visitor.client}", f"Basic {known.introspection_credentials}"
    requests = [build_get_request(host, paths.userinfo, Authorization=f"Bearer {token}") for token in tokens]
    introspected = [
        build_post_request(host, paths.introspection, {"token": token}, Authorization=asking) for token in tokens
    ]

    def exchange(location: bytes) -> bytes:
        found = _CODE.search(location)
        assert found is not None  # noqa: S101 - answers are checked before they are passed on
        form = {"grant_type": "authorization_code", "code": found[1].decode(), "redirect_uri": REDIRECT_URI}
        return build_post_request(host, paths.token, {**form, "code_verifier": VERIFIER}, Authorization=basic)

    def refresh(body: bytes) -> bytes:
        form = {"grant_type": "refresh_token", "refresh_token": json.loads(body)["refresh_token"]}
        return build_post_request(host, paths.token, form, Authorization=basic)

    authorize_request = build_get_request(
        host, f"{paths.authorize}?{urlencode(visitor.authorization)}", Cookie=visitor.cookie
    )
    with_code, with_tokens = {303: f"{REDIRECT_URI}?code=".encode()}, {200: b'"refresh_token"'}
    authorize = RequestCase("authorize", cycle([authorize_request]), expected=with_code)
    code = RequestCase("code", expected=with_tokens, before=authorize, make=exchange)
    later = RequestCase("refresh", expected=with_tokens, before=code, make=refresh, feeds_itself=True)
    return [
        RequestCase("opaque", _assertion_requests(known, known.opaque), expected=_ID_TOKEN),
        RequestCase("jwt", _assertion_requests(known, known.jwt), expected={200: b'"access_token":"eyJ'}),
        RequestCase("discovery", cycle([build_get_request(host, DISCOVERY)]), expected={200: b'"jwks_uri"'}),
        RequestCase("keys", cycle([build_get_request(host, paths.jwks)]), expected={200: b'"kty"'}),
        RequestCase("introspection", cycle(introspected), expected={200: b'"active":true'}),
        RequestCase("userinfo", cycle(requests), expected={200: b'"preferred_username"'}),
        *(authorize, code, later),
    ]


def authorization_parameters(client_id: str, scope: str) -> dict[str, str]:
    """The parameters of an authorization request with PKCE."""
    return {
        "client_id": client_id,
        "redirect_uri": REDIRECT_URI,
        "response_type": "code",
        "scope": scope,
        "state": "a-state-of-the-application",
        "nonce": "a-nonce-of-the-application",
        "code_challenge": pkce_challenge(VERIFIER),
        "code_challenge_method": "S256",
    }


_ID_TOKEN = {200: b'"id_token"'}


def _assertion_requests(known: RequestFixtures, signer: AssertionSigner, scope: str = SCOPE) -> Iterator[bytes]:
    """Token requests, each signed when it is taken, so that none is old."""
    key = load_pem_private_key(signer.key.encode(), None)
    assert isinstance(key, RSAPrivateKey)  # noqa: S101 - no others are made
    began, paths, prefix = int(time.time()), known.endpoints, secrets.token_hex(8)
    for number in count():
        right = assertion_claims(
            signer.user_id, known.issuer, int(time.time()) - 5, exp=began + 3600, jti=f"{prefix}-{number}"
        )
        assertion = {paths.assertion: sign_assertion(right, key, key_id=signer.key_id)}
        yield build_post_request(known.host, paths.token, {**paths.assertion_grant, "scope": scope, **assertion})


def build_get_request(host: str, path: str, **headers: str) -> bytes:
    """A GET request as bytes."""
    return _request_head("GET", host, path, headers)


def build_post_request(host: str, path: str, form: Mapping[str, str], **headers: str) -> bytes:
    """A POST request with a form, as bytes."""
    body = urlencode(form).encode()
    described = {"Content-Type": "application/x-www-form-urlencoded", "Content-Length": str(len(body))}
    return _request_head("POST", host, path, headers | described) + body


def _request_head(method: str, host: str, path: str, headers: Mapping[str, str]) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Accept: */*", "User-Agent: benchmark"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()
