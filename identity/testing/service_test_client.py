"""ServiceTestClient: calls the service through WebTest as a client program does, with URLs from discovery."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import urlencode, urlsplit

from webtest import TestApp

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105
FORM_CONTENT_TYPE = "application/x-www-form-urlencoded"
DISCOVERY_PATH = "/.well-known/openid-configuration"
MANAGEMENT_PATH = "/management/v1"

#: An assertion no longer than this is not a secret: an identifier, or garbage from a test.
_LONGER_THAN_NAMES = 100

FormData = Mapping[str, str] | Sequence[tuple[str, str]] | bytes


@dataclass(frozen=True)
class Credentials:
    """A client id with its secret."""

    client_id: str
    secret: str = field(repr=False)

    @property
    def header(self) -> str:
        """The Authorization header of the client secret basic method (RFC 6749 §2.3.1)."""
        return basic_auth_header(f"{self.client_id}:{self.secret}")


def basic_auth_header(text: str | bytes) -> str:
    """A Basic header around this text."""
    data = text.encode() if isinstance(text, str) else text
    return f"Basic {base64.b64encode(data).decode()}"


def bearer_headers(token: str) -> dict[str, str]:
    """The headers with a bearer token."""
    return {"Authorization": f"Bearer {token}"}


def encode_form(form: FormData) -> bytes:
    """A form as request body; bytes are sent as they are."""
    if isinstance(form, bytes):
        return form
    return urlencode(dict(form) if isinstance(form, Mapping) else list(form)).encode()


class ServiceTestClient:
    """Responses are returned as they are, including errors; every secret sent or received is collected in
    ``secrets``.
    """

    def __init__(self, app: TestApp, issuer_url: str) -> None:
        self.app = app
        self.issuer_url = issuer_url
        self.secrets: set[str] = set()

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        environ: Mapping[str, str] | None = None,
    ) -> Any:
        """Send any request; the Host header is that of the absolute ``url`` unless ``environ`` overrides it."""
        request = self.app.RequestClass.blank(url, method=method)
        if body:
            request.body = body
        for name, value in (headers or {}).items():
            request.headers[name] = value
        request.environ["REMOTE_ADDR"] = "192.0.2.1"
        # A program keeps no cookies; those of pages belong to Browser.
        self.app.reset()
        request.environ.update(environ or {})
        return self.app.do_request(request, status="*", expect_errors=True)

    def get(self, url: str, headers: Mapping[str, str] | None = None) -> Any:
        """The response to a GET."""
        return self.request("GET", url, headers=headers)

    def post(self, url: str, form: FormData, headers: Mapping[str, str] | None = None) -> Any:
        """The response to a form-encoded POST; a form given as bytes is sent as it is."""
        return self.request(
            "POST", url, headers={"Content-Type": FORM_CONTENT_TYPE, **(headers or {})}, body=encode_form(form)
        )

    @cached_property
    def discovery(self) -> dict[str, Any]:
        """The discovery document, fetched once."""
        answer = self.get(self.issuer_url + DISCOVERY_PATH)
        assert answer.status_int == 200, answer
        document: dict[str, Any] = answer.json
        return document

    @property
    def management_url(self) -> str:
        """The URL of the management API, on the host of the token endpoint."""
        parts = urlsplit(self.discovery["token_endpoint"])
        return f"{parts.scheme}://{parts.netloc}{MANAGEMENT_PATH}"

    def request_token(self, form: FormData, headers: Mapping[str, str] | None = None) -> Any:
        """The token endpoint's response."""
        answer = self.post(self.discovery["token_endpoint"], form, headers)
        assertion = "" if isinstance(form, bytes) else dict(form).get("assertion", "")
        if assertion.count(".") == 2 and len(assertion) > _LONGER_THAN_NAMES:
            self._remember(assertion)
        if answer.status_int == 200:
            self._remember(*(answer.json.get(name) for name in ("access_token", "id_token", "refresh_token")))
        return answer

    def exchange_assertion(self, assertion: str, scope: str | None = "openid", **parameters: str) -> Any:
        """The token endpoint's response to an assertion (service description §4.3, JWT profile)."""
        form = {"grant_type": JWT_BEARER, "assertion": assertion, **parameters}
        return self.request_token(form if scope is None else {**form, "scope": scope})

    def fetch_userinfo(self, token: str, method: str = "GET") -> Any:
        """The userinfo endpoint's response, the token in the header."""
        return self.request(method, self.discovery["userinfo_endpoint"], headers=bearer_headers(token))

    def introspect(self, token: str, client: Credentials, **parameters: str) -> Any:
        """The introspection endpoint's response to this client."""
        self._remember(client.secret)
        form = {"token": token, **parameters}
        return self.post(self.discovery["introspection_endpoint"], form, {"Authorization": client.header})

    def revoke(self, token: str, client: Credentials, **parameters: str) -> Any:
        """The revocation endpoint's response to this client."""
        self._remember(client.secret)
        form = {"token": token, **parameters}
        return self.post(self.discovery["revocation_endpoint"], form, {"Authorization": client.header})

    def fetch_jwks(self, headers: Mapping[str, str] | None = None) -> Any:
        """The published keys."""
        return self.get(self.discovery["jwks_uri"], headers)

    def call_management_api(self, path: str, token: str | None, method: str = "GET", members: object = None) -> Any:
        """The management API's response; ``path`` follows /management/v1, ``members`` are sent as JSON."""
        headers = {} if token is None else bearer_headers(token)
        body = b""
        if members is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(members).encode()
        return self.request(method, self.management_url + path, headers=headers, body=body)

    def _remember(self, *secrets: str | None) -> None:
        self.secrets.update(secret for secret in secrets if secret)
