"""What is asked of the service: requests made in advance, so that making them is not measured."""

import base64
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from urllib.parse import urlencode

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from pyramid.paster import get_appsettings

from benchmarks import hello
from identity import first_start
from identity.app import assemble
from identity.domain.users import TokenFormat
from identity.services.access import THE_OPERATOR
from identity.services.bundle import Services
from identity.services.commands.service_users import AddServiceUserKey, CreateServiceUser
from identity.testing.assertions import claims, signed

KEYS = "/oauth/v2/keys"
TOKEN = "/oauth/v2/token"  # noqa: S105 - an address
USERINFO = "/oauth/v2/userinfo"
INTROSPECT = "/oauth/v2/introspect"
DISCOVERY = "/.well-known/openid-configuration"

_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_SCOPE = "openid profile"
_AUDIENCE_SCOPE = f"{_SCOPE} urn:service:iam:org:project:id:service:aud"


@dataclass(frozen=True)
class Signer:
    """A service user that can ask for tokens."""

    user_id: str
    key_id: str
    key: RSAPrivateKey = field(repr=False)


@dataclass(frozen=True)
class Stock:
    """Whom the prepared service knows: two service users, one for each format of access token, and one client."""

    issuer: str
    host: str
    opaque: Signer
    jwt: Signer
    client: str = field(repr=False)


class Case:
    """One kind of request and what it may cost, in signatures; ``expected`` is part of every right answer."""

    def __init__(
        self, name: str, title: str, requests: Iterator[bytes], *, expected: bytes, target: float | None = None
    ) -> None:
        self.name = name
        self.title = title
        self.expected = expected
        self.target = target
        self._requests = requests

    def take(self, count: int) -> list[bytes]:
        """The next requests, each sent once if they differ, or the few that are sent over and over."""
        return list(islice(self._requests, count))


def prepare(ini: Path, host: str) -> Stock:
    """Let a fresh data folder have everything that the cases need: the first start, and two service users."""
    identity = assemble(get_appsettings(str(ini)))
    try:
        outcome = first_start.prepare(identity, announce=False)
        assert outcome.client_file is not None  # noqa: S101 - development.ini's first start writes one
        client = json.loads(outcome.client_file.read_text("utf-8"))
        with identity.transaction() as services:
            signers = {one: _add_signer(services, outcome.organization_id, one) for one in TokenFormat}
    finally:
        identity.close()
    credentials = f"{client['client_id']}:{client['client_secret']}".encode()
    return Stock(
        issuer=identity.settings.issuer_url,
        host=host,
        opaque=signers[TokenFormat.OPAQUE],
        jwt=signers[TokenFormat.JWT],
        client=base64.b64encode(credentials).decode(),
    )


def hello_case(host: str) -> Case:
    """The web server alone."""
    return Case("hello", "bare web server", _again(_get(host, hello.PATH)), expected=hello.BODY)


def token_cases(stock: Stock) -> list[Case]:
    """The cases that each need a new assertion for each request."""
    return [
        Case(
            "opaque",
            "jwt-bearer, opaque",
            _assertions(stock, stock.opaque, _SCOPE),
            expected=b'"id_token"',
            target=3.0,
        ),
        Case(
            "jwt",
            "jwt-bearer, JWT",
            _assertions(stock, stock.jwt, _SCOPE),
            expected=b'"access_token": "eyJ',
            target=4.0,
        ),
        Case(
            "single-use",
            "jwt-bearer, opaque, jti",
            _assertions(stock, stock.opaque, _SCOPE, single_use=True),
            expected=b'"id_token"',
        ),
    ]


def for_project(stock: Stock) -> Case:
    """Gets the tokens that ``resource_cases`` show."""
    requests = _assertions(stock, stock.opaque, _AUDIENCE_SCOPE)
    return Case("tokens", "tokens for the own project", requests, expected=b'"access_token"')


def resource_cases(stock: Stock, tokens: list[str]) -> list[Case]:
    """The cases that need tokens, and the public documents."""
    shown = [_get(stock.host, USERINFO, Authorization=f"Bearer {token}") for token in tokens]
    introspected = [
        _post(stock.host, INTROSPECT, {"token": token}, Authorization=f"Basic {stock.client}") for token in tokens
    ]
    return [
        Case("discovery", "discovery", _again(_get(stock.host, DISCOVERY)), expected=b'"jwks_uri"', target=0.7),
        Case("keys", "keys", _again(_get(stock.host, KEYS)), expected=b'"kty"', target=0.7),
        Case("userinfo", "userinfo", _again(*shown), expected=b'"preferred_username"', target=1.5),
        Case("introspection", "introspection", _again(*introspected), expected=b'"active": true', target=1.5),
    ]


def _add_signer(services: Services, organization_id: str, token_format: TokenFormat) -> Signer:
    name = f"benchmark-{token_format}"
    command = CreateServiceUser(user_name=name, display_name=name, access_token_type=token_format)
    user = services.service_users.create(organization_id, command)
    file = services.service_users.add_key(user.id, AddServiceUserKey(), by=THE_OPERATOR)
    key = load_pem_private_key(file.key.encode(), None)
    assert isinstance(key, RSAPrivateKey)  # noqa: S101 - the service makes no others
    return Signer(user.id, file.key_id, key)


def _assertions(stock: Stock, signer: Signer, scope: str, *, single_use: bool = False) -> Iterator[bytes]:
    """Token requests with one new assertion each, told apart by ``exp``, and by ``jti`` if they are for single use.

    The format of the service's documentation has no ``jti``.
    """
    issued_at = int(time.time()) - 5
    for number in range(80_000):
        extra = {"jti": f"{signer.key_id}-{number}"} if single_use else {}
        right = claims(signer.user_id, stock.issuer, issued_at, exp=issued_at + 3600 + number, **extra)
        assertion = signed(right, signer.key, key_id=signer.key_id)
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
