"""A client of the service that uses only what every client has: a key file, discovery and HTTP."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import requests

from identity.cli.command_context import CommandError
from identity.crypto.jwt import sign
from identity.crypto.signature_keys import InvalidKey, PrivateKey
from identity.domain.service_user_keys import KeyFile
from identity.domain.validators import LOOPBACK_HOSTS

JWT_BEARER_GRANT_TYPE = "urn:ietf:params:oauth:grant-type:jwt-bearer"

_ASSERTION_SECONDS = 300
_TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class SignedAssertion:
    """A signed assertion with its claims (service description §2.3)."""

    text: str
    header: Mapping[str, Any]
    claims: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HttpExchange:
    method: str
    url: str
    status: int
    document: dict[str, Any]


def sign_assertion(key_file: KeyFile, issuer: str, algorithm: str | None = None) -> SignedAssertion:
    """A new assertion for the issuer, by default with the usual algorithm of the type of key. Raises CommandError if
    the key in the file is not usable."""
    try:
        key = PrivateKey.from_pem(key_file.key, algorithm)
    except InvalidKey as problem:
        raise CommandError(f'The key file\'s "key" cannot be used: {problem}.') from None
    now = int(time.time())
    claims = {
        "iss": key_file.user_id,
        "sub": key_file.user_id,
        "aud": issuer,
        "iat": now,
        "exp": now + _ASSERTION_SECONDS,
    }
    text = sign(claims, key, key_id=key_file.key_id)
    return SignedAssertion(text, {"alg": key.algorithm, "kid": key_file.key_id}, claims)


class ServiceClient:
    """Sends requests to one service and discovers its endpoints on first use."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self._session = requests.Session()
        # Otherwise credentials from .netrc would replace our Authorization header.
        self._session.auth = _prepare_verbatim
        if _host(issuer) in LOOPBACK_HOSTS:
            # A proxy could not reach addresses of this machine.
            self._session.trust_env = False
        self._document: dict[str, Any] | None = None

    def discovery(self) -> dict[str, Any]:
        """Raises CommandError."""
        if self._document is None:
            answer = self.send("GET", f"{self.issuer}/.well-known/openid-configuration")
            if answer.status != requests.codes.ok or answer.document.get("issuer") != self.issuer:
                raise CommandError(
                    f"{self.issuer} is not the issuer of an identity service."
                    " Give its exact address, as it stands in identity.issuer_url."
                )
            self._document = answer.document
        return self._document

    def endpoint_url(self, name: str) -> str:
        """The URL of an endpoint in the discovery document. Raises CommandError."""
        address = self.discovery().get(f"{name}_endpoint")
        if not isinstance(address, str):
            raise CommandError(f"{self.issuer} advertises no {name} endpoint.")
        if self.issuer.startswith("https://") and not address.startswith("https://"):
            raise CommandError(f"{self.issuer} advertises a {name} endpoint without https. Nothing was sent there.")
        return address

    def request_token(self, assertion: SignedAssertion, scope: str) -> HttpExchange:
        """The response of the token endpoint. Raises CommandError with the service's error."""
        form = {"grant_type": JWT_BEARER_GRANT_TYPE, "scope": scope, "assertion": assertion.text}
        answer = self.send("POST", self.endpoint_url("token"), data=form)
        if answer.status != requests.codes.ok:
            error, description = (answer.document.get(name) for name in ("error", "error_description"))
            raise CommandError(
                f"The service refused: {error or answer.status}{f', {description}' if description else ''}"
            )
        return answer

    def send(self, method: str, url: str, **request: Any) -> HttpExchange:
        """Send a request and parse the JSON response. Raises CommandError if there is none."""
        try:
            response = self._session.request(method, url, timeout=_TIMEOUT_SECONDS, allow_redirects=False, **request)
        except requests.exceptions.SSLError:
            raise CommandError(f"{url}: the certificate is not trusted here.") from None
        except (requests.ConnectionError, requests.Timeout):
            raise CommandError(f"Nothing answers at {self.issuer}. Is the service running there?") from None
        except (requests.RequestException, ValueError):
            raise CommandError(f"{url} is not an address of a service.") from None
        if response.status_code == requests.codes.misdirected_request:
            raise CommandError(
                f"The service at {url} has another name. Give its address as identity.issuer_url has it."
            )
        try:
            document = response.json()
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise CommandError(f"{url} answered {response.status_code}, and not in JSON. Is this an identity service?")
        return HttpExchange(method, url, response.status_code, document)


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _prepare_verbatim(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request
