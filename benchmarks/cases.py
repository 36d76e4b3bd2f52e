"""What is asked of the service: requests made in advance, so that making them is not measured."""

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice
from urllib.parse import urlencode

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from benchmarks import hello
from benchmarks.load import Expected
from benchmarks.stock import REDIRECT_URI, VERIFIER, Signer, Stock, Waiting
from identity.testing.assertions import claims, signed

AUTHORIZE = "/oauth/v2/authorize"
KEYS = "/oauth/v2/keys"
TOKEN = "/oauth/v2/token"  # noqa: S105 - an address
USERINFO = "/oauth/v2/userinfo"
INTROSPECT = "/oauth/v2/introspect"
DISCOVERY = "/.well-known/openid-configuration"

_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_SCOPE = "openid profile"
_AUDIENCE_SCOPE = f"{_SCOPE} urn:service:iam:org:project:id:service:aud"

_CODE = re.compile(rb"[?&]code=([^&]+)")


class Case:
    """One kind of request; ``expected`` is what right answers hold, by status."""

    #: The case whose answers bring what the requests are made of.
    before: "Case | None" = None

    def __init__(self, name: str, title: str, requests: Iterator[bytes], *, expected: Expected) -> None:
        self.name = name
        self.title = title
        self.expected = expected
        self._requests = requests
        self._listeners: list[Stage] = []

    @property
    def keeps(self) -> bool:
        """True if somebody wants to hear what the answers hold."""
        return bool(self._listeners)

    def take(self, count: int) -> list[bytes]:
        """The next requests, each sent once if they differ, or the few that are sent over and over."""
        return list(islice(self._requests, count))

    def give_back(self, requests: Sequence[bytes]) -> None:
        """Take these first the next time: they were not sent."""
        self._requests = chain(requests, self._requests)

    def told_to(self, stage: "Stage") -> None:
        """Have a stage hear of all answers from now on."""
        self._listeners.append(stage)

    def answered(self, contents: Sequence[bytes]) -> None:
        """Pass on what the answers hold."""
        for stage in self._listeners:
            stage.make_of(contents)


class Stage(Case):
    """A case of requests that are good once, each made from an answer of the case before, or of its own kind.

    What is not used by the time the next answers come is dropped.
    """

    def __init__(
        self,
        name: str,
        title: str,
        make: Callable[[bytes], bytes],
        *,
        before: Case,
        expected: Expected,
        feeds_itself: bool = False,
    ) -> None:
        super().__init__(name, title, iter(()), expected=expected)
        self.before = before
        self._make = make
        before.told_to(self)
        if feeds_itself:
            self.told_to(self)

    def make_of(self, contents: Sequence[bytes]) -> None:
        """The next requests are made from these answers."""
        self._requests = iter([self._make(content) for content in contents])


@dataclass(frozen=True)
class Sum:
    """Several requests that make up one thing."""

    name: str
    title: str
    parts: tuple[str, ...]


CODE_FLOW = Sum("code-flow", "code flow with PKCE", ("authorize", "code"))


def hello_case(host: str) -> Case:
    """The web server alone."""
    return Case("hello", "bare web server", _again(_get(host, hello.PATH)), expected={200: b'"hello"'})


def token_cases(stock: Stock) -> list[Case]:
    """The cases that each need a new assertion for each request."""
    return [
        Case(
            "opaque",
            "jwt-bearer, opaque",
            _assertions(stock, stock.opaque, _SCOPE),
            expected={200: b'"id_token"'},
        ),
        Case(
            "jwt",
            "jwt-bearer, JWT",
            _assertions(stock, stock.jwt, _SCOPE),
            expected={200: b'"access_token":"eyJ'},
        ),
        Case(
            "single-use",
            "jwt-bearer, opaque, jti",
            _assertions(stock, stock.opaque, _SCOPE, single_use=True),
            expected={200: b'"id_token"'},
        ),
    ]


def for_project(stock: Stock) -> Case:
    """Gets the tokens that ``resource_cases`` show."""
    requests = _assertions(stock, stock.opaque, _AUDIENCE_SCOPE)
    return Case("tokens", "tokens for the own project", requests, expected={200: b'"access_token"'})


def resource_cases(stock: Stock, tokens: list[str]) -> list[Case]:
    """The cases that need tokens, and the public documents."""
    shown = [_get(stock.host, USERINFO, Authorization=f"Bearer {token}") for token in tokens]
    introspected = [
        _post(stock.host, INTROSPECT, {"token": token}, Authorization=f"Basic {stock.client}") for token in tokens
    ]
    known, active = {200: b'"preferred_username"'}, {200: b'"active":true'}
    return [
        Case("discovery", "discovery", _again(_get(stock.host, DISCOVERY)), expected={200: b'"jwks_uri"'}),
        Case("keys", "keys", _again(_get(stock.host, KEYS)), expected={200: b'"kty"'}),
        Case("userinfo", "userinfo", _again(*shown), expected=known),
        Case("introspection", "introspection", _again(*introspected), expected=active),
    ]


def people_cases(stock: Stock) -> list[Case]:
    """What an application does for a person who is signed in: get a code, tokens for the code, and new ones later."""
    visitor = stock.visitor
    basic = f"Basic {visitor.client}"
    address = f"{AUTHORIZE}?{urlencode(visitor.authorization)}"
    with_code = {303: f"{REDIRECT_URI}?code=".encode()}
    with_tokens = {200: b'"refresh_token"'}

    def exchange(location: bytes) -> bytes:
        found = _CODE.search(location)
        assert found is not None  # noqa: S101 - answers are checked before they are passed on
        form = {"grant_type": "authorization_code", "code": found[1].decode(), "redirect_uri": REDIRECT_URI}
        return _post(stock.host, TOKEN, {**form, "code_verifier": VERIFIER}, Authorization=basic)

    def refresh(body: bytes) -> bytes:
        form = {"grant_type": "refresh_token", "refresh_token": json.loads(body)["refresh_token"]}
        return _post(stock.host, TOKEN, form, Authorization=basic)

    requests = _again(_get(stock.host, address, Cookie=visitor.cookie))
    authorize = Case("authorize", "authorize, with session", requests, expected=with_code)
    code = Stage("code", "tokens for a code", exchange, before=authorize, expected=with_tokens)
    later = Stage(
        "refresh",
        "refresh, with rotation",
        refresh,
        before=code,
        expected=with_tokens,
        feeds_itself=True,
    )
    return [authorize, code, later]


def password_page(stock: Stock, waiting: Waiting) -> bytes:
    """The request for the page that asks for the password."""
    return _get(stock.host, waiting.path, Cookie=waiting.cookie)


def password_attempt(stock: Stock, waiting: Waiting, token: str, password: str) -> bytes:
    """The request that sends a password, with the token of the page's form."""
    return _post(stock.host, waiting.path, {"csrf_token": token, "password": password}, Cookie=waiting.cookie)


def _assertions(stock: Stock, signer: Signer, scope: str, *, single_use: bool = False) -> Iterator[bytes]:
    """Token requests with one new assertion each, told apart by ``exp``, and by ``jti`` if they are for single use.

    The format of the service's documentation has no ``jti``. Each is made when it is taken: none of them may be old.
    """
    key = load_pem_private_key(signer.key.encode(), None)
    assert isinstance(key, RSAPrivateKey)  # noqa: S101 - the service makes no others
    began = int(time.time())
    for number in count():
        extra = {"jti": f"{signer.key_id}-{number}"} if single_use else {}
        right = claims(signer.user_id, stock.issuer, int(time.time()) - 5, exp=began + 3600 + number, **extra)
        assertion = signed(right, key, key_id=signer.key_id)
        yield _post(stock.host, TOKEN, {"grant_type": _JWT_BEARER, "scope": scope, "assertion": assertion})


def _again(*requests: bytes) -> Iterator[bytes]:
    while True:
        yield from requests


def _get(host: str, path: str, **headers: str) -> bytes:
    return _head("GET", host, path, headers)


def _post(host: str, path: str, form: dict[str, str], **headers: str) -> bytes:
    body = urlencode(form).encode()
    described = {"Content-Type": "application/x-www-form-urlencoded", "Content-Length": str(len(body))}
    return _head("POST", host, path, headers | described) + body


def _head(method: str, host: str, path: str, headers: dict[str, str]) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Accept: */*", "User-Agent: benchmark"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()
