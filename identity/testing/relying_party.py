"""ServiceClient: speaks to the service through WebTest as a client program does, by addresses from discovery.

RelyingParty: an application that has people sign in here; it takes no answer that is not exactly right.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers
from webtest import TestApp

from identity.domain.applications import ApplicationType, ConsentRule
from identity.services.access import THE_OPERATOR
from identity.services.commands.applications import RegisterApplication
from identity.testing.responses import shown

if TYPE_CHECKING:
    from identity.testing.world import World

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
FORM = "application/x-www-form-urlencoded"
WELL_KNOWN = "/.well-known/openid-configuration"
MANAGEMENT = "/management/v1"

#: What is sent as an assertion and is no longer than this is no secret: an identifier, or a test's idea of rubbish.
_LONGER_THAN_NAMES = 100

Form = Mapping[str, str] | Sequence[tuple[str, str]] | bytes

#: Members of an application whose people are not asked before it learns anything of them.
UNASKED: dict[str, Any] = {"consent": ConsentRule.NEVER}


@dataclass(frozen=True)
class Credentials:
    """A client id with its secret."""

    client_id: str
    secret: str = field(repr=False)

    @property
    def header(self) -> str:
        """The Authorization header of the client secret basic method (RFC 6749 §2.3.1)."""
        return basic(f"{self.client_id}:{self.secret}")


def basic(text: str | bytes) -> str:
    """A Basic header around this text."""
    data = text.encode() if isinstance(text, str) else text
    return f"Basic {base64.b64encode(data).decode()}"


def bearer(token: str) -> dict[str, str]:
    """The headers that show an access token."""
    return {"Authorization": f"Bearer {token}"}


def form_encoded(form: Form) -> bytes:
    """A form as it stands in a body; one given as bytes is left as it is."""
    if isinstance(form, bytes):
        return form
    return urlencode(dict(form) if isinstance(form, Mapping) else list(form)).encode()


class ServiceClient:
    """Every answer is returned as it is, errors included; every secret that passes is remembered in ``secrets``."""

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
        """The answer to any request; the Host header is that of the absolute ``url`` unless ``environ`` says other."""
        request = self.app.RequestClass.blank(url, method=method)
        if body:
            request.body = body
        for name, value in (headers or {}).items():
            request.headers[name] = value
        request.environ["REMOTE_ADDR"] = "192.0.2.1"
        # A program keeps no cookies; those of pages stay with Browser.
        self.app.reset()
        request.environ.update(environ or {})
        return self.app.do_request(request, status="*", expect_errors=True)

    def get(self, url: str, headers: Mapping[str, str] | None = None) -> Any:
        """The answer to a GET."""
        return self.request("GET", url, headers=headers)

    def post(self, url: str, form: Form, headers: Mapping[str, str] | None = None) -> Any:
        """The answer to a form-encoded POST; a form given as bytes is sent as it is."""
        return self.request("POST", url, headers={"Content-Type": FORM, **(headers or {})}, body=form_encoded(form))

    @cached_property
    def discovery(self) -> dict[str, Any]:
        """The discovery document, fetched once."""
        answer = self.get(self.issuer_url + WELL_KNOWN)
        assert answer.status_int == 200, answer
        document: dict[str, Any] = answer.json
        return document

    @property
    def management_url(self) -> str:
        """Where the management API lives: on the host of the token endpoint."""
        parts = urlsplit(self.discovery["token_endpoint"])
        return f"{parts.scheme}://{parts.netloc}{MANAGEMENT}"

    def token(self, form: Form, headers: Mapping[str, str] | None = None) -> Any:
        """The token endpoint's answer."""
        answer = self.post(self.discovery["token_endpoint"], form, headers)
        assertion = "" if isinstance(form, bytes) else dict(form).get("assertion", "")
        if assertion.count(".") == 2 and len(assertion) > _LONGER_THAN_NAMES:
            self._remember(assertion)
        if answer.status_int == 200:
            self._remember(*(answer.json.get(name) for name in ("access_token", "id_token", "refresh_token")))
        return answer

    def assertion(self, assertion: str, scope: str | None = "openid", **parameters: str) -> Any:
        """The token endpoint's answer to an assertion (service description §4.3, JWT profile)."""
        form = {"grant_type": JWT_BEARER, "assertion": assertion, **parameters}
        return self.token(form if scope is None else {**form, "scope": scope})

    def userinfo(self, token: str, method: str = "GET") -> Any:
        """The userinfo endpoint's answer, the token in the header."""
        return self.request(method, self.discovery["userinfo_endpoint"], headers=bearer(token))

    def introspect(self, token: str, client: Credentials, **parameters: str) -> Any:
        """The introspection endpoint's answer to this client."""
        self._remember(client.secret)
        form = {"token": token, **parameters}
        return self.post(self.discovery["introspection_endpoint"], form, {"Authorization": client.header})

    def revoke(self, token: str, client: Credentials, **parameters: str) -> Any:
        """The revocation endpoint's answer to this client."""
        self._remember(client.secret)
        form = {"token": token, **parameters}
        return self.post(self.discovery["revocation_endpoint"], form, {"Authorization": client.header})

    def keys(self, headers: Mapping[str, str] | None = None) -> Any:
        """The published keys."""
        return self.get(self.discovery["jwks_uri"], headers)

    def management(self, path: str, token: str | None, method: str = "GET", members: object = None) -> Any:
        """The management API's answer; ``path`` follows /management/v1, ``members`` are sent as JSON."""
        headers = {} if token is None else bearer(token)
        body = b""
        if members is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(members).encode()
        return self.request(method, self.management_url + path, headers=headers, body=body)

    def _remember(self, *secrets: str | None) -> None:
        self.secrets.update(secret for secret in secrets if secret)


@dataclass(frozen=True)
class Asked:
    """An authorization request that an application made: its address, and what the answer has to fit."""

    endpoint: str
    parameters: Mapping[str, str]
    verifier: str | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """Where the browser is sent."""
        return f"{self.endpoint}?{urlencode(self.parameters)}"

    @property
    def mode(self) -> str:
        """How the answer is to come: as asked, else as the response type has it."""
        fronts = {"token", "id_token"} & set(self.parameters.get("response_type", "").split())
        return self.parameters.get("response_mode") or ("fragment" if fronts else "query")


@dataclass(frozen=True)
class Tokens:
    """What a sign-in brought; ``claims`` are those of the ID token, verified."""

    members: Mapping[str, Any] = field(repr=False)
    claims: Mapping[str, Any]

    @property
    def access_token(self) -> str:
        """The access token."""
        token: str = self.members["access_token"]
        return token

    @property
    def id_token(self) -> str:
        """The ID token as it came."""
        token: str = self.members["id_token"]
        return token

    @property
    def refresh_token(self) -> str:
        """The refresh token; there is one with offline_access alone."""
        token: str = self.members["refresh_token"]
        return token

    @property
    def scope(self) -> list[str]:
        """The granted scopes."""
        return str(self.members["scope"]).split()


class RelyingParty:
    """An application that has people sign in here, and checks everything that it is told.

        party = RelyingParty.of(world)
        asked = party.ask(scope="openid email", prompt="none")
        tokens = party.tokens(browser.open(asked.url, by=party.origin), asked)
        assert tokens.claims["sub"] == person.id

    Methods that check raise AssertionError and show the answer. Answers of the token endpoint are returned as they are.
    """

    def __init__(
        self,
        client: ServiceClient,
        client_id: str,
        secret: str | None,
        *,
        redirect_uri: str,
        now: Callable[[], int],
        authentication_method: str = "client_secret_basic",
        post_logout_redirect_uri: str | None = None,
    ) -> None:
        self.client = client
        self.client_id = client_id
        self.secret = secret
        self.redirect_uri = redirect_uri
        self.now = now
        self.authentication_method = authentication_method
        self.post_logout_redirect_uri = post_logout_redirect_uri
        if secret is not None:
            client.secrets.add(secret)

    @classmethod
    def of(
        cls,
        world: "World",
        *,
        redirect_uri: str = "https://app.example/cb",
        post_logout_redirect_uri: str = "https://app.example/bye",
        type: ApplicationType = ApplicationType.WEB,  # noqa: A002
        project_id: str | None = None,
        response_types: Iterable[str] = ("code", "id_token", "id_token token"),
        grant_types: Iterable[str] = ("authorization_code", "refresh_token"),
        authentication_method: str = "client_secret_basic",
        **members: Any,
    ) -> "RelyingParty":
        """A new application, by default of a new project and for all response types, and the program behind it.

        It asks nobody for consent unless told otherwise: most people in tests belong to other organizations.
        """
        name = members.pop("name", f"Application-{token_urlsafe(6)}")
        project_id = project_id or world.a_project().id
        command = RegisterApplication.of(
            name=name,
            type=type,
            redirect_uris=members.pop("redirect_uris", (redirect_uri,)),
            post_logout_redirect_uris=members.pop("post_logout_redirect_uris", (post_logout_redirect_uri,)),
            response_types=frozenset(response_types),
            grant_types=frozenset(grant_types),
            authentication_method=authentication_method,
            **(UNASKED | members),
        )
        with world.transaction() as services:
            application, secret = services.applications.register(project_id, command, by=THE_OPERATOR)
        return cls(
            world.client,
            application.id,
            secret,
            redirect_uri=redirect_uri,
            now=lambda: world.clock.seconds,
            authentication_method=authentication_method,
            post_logout_redirect_uri=post_logout_redirect_uri,
        )

    @property
    def origin(self) -> str:
        """The web origin of the application's own pages."""
        parts = urlsplit(self.redirect_uri)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def credentials(self) -> Credentials:
        """Client id and secret."""
        assert self.secret is not None, "the application is public"
        return Credentials(self.client_id, self.secret)

    def ask(
        self, response_type: str | None = "code", scope: str | None = "openid", *, pkce: bool = True, **parameters: Any
    ) -> Asked:
        """A right request with fresh state, nonce and PKCE; further parameters replace these, None leaves one out."""
        verifier = token_urlsafe(48) if pkce and "code" in (response_type or "").split() else None
        right = {
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "response_type": response_type,
            "scope": scope,
            "state": token_urlsafe(12),
            "nonce": token_urlsafe(12),
        }
        if verifier is not None:
            right |= {"code_challenge": s256(verifier), "code_challenge_method": "S256"}
        given = {name: str(value) for name, value in (right | parameters).items() if value is not None}
        return Asked(self.client.discovery["authorization_endpoint"], given, verifier)

    def read(self, answer: Any, asked: Asked, *, mode: str | None = None) -> dict[str, str]:
        """The members of an answer, checked: delivered as asked, with the state unchanged and our issuer (RFC 9207)."""
        mode = mode or asked.mode
        assert answer.headers.get("Cache-Control") == "no-store", shown(answer)
        assert answer.headers.get("Referrer-Policy") == "no-referrer", shown(answer)
        assert answer.headers.get("X-Content-Type-Options") == "nosniff", shown(answer)
        uri = asked.parameters["redirect_uri"]
        pairs = _posted(answer, uri) if mode == "form_post" else _redirected(answer, uri, mode)
        members = dict(pairs)
        assert len(members) == len(pairs), f"a member stands twice: {shown(answer)}"
        assert members.pop("state", None) == asked.parameters.get("state"), shown(answer)
        assert members.pop("iss", None) == self.client.issuer_url, shown(answer)
        for name in ("code", "access_token", "id_token"):
            if name in members:
                self.client.secrets.add(members[name])
        return members

    def refused(self, answer: Any, asked: Asked, error: str, *, mode: str | None = None) -> str:
        """Check that the answer is this error and nothing else; returns its description."""
        members = self.read(answer, asked, mode=mode)
        assert set(members) == {"error", "error_description"}, shown(answer)
        assert members["error"] == error, shown(answer)
        description = members["error_description"]
        # RFC 6749 §4.1.2.1
        assert description, shown(answer)
        assert all(" " <= one <= "~" and one not in '"\\' for one in description), shown(answer)
        return description

    def code(self, answer: Any, asked: Asked) -> str:
        """The code in the answer, which holds nothing else."""
        members = self.read(answer, asked)
        assert set(members) == {"code"}, shown(answer)
        return members["code"]

    def redeem(self, code: str, asked: Asked, **parameters: str | None) -> Any:
        """The token endpoint's answer to a code; parameters replace the right ones, None leaves one out."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": asked.parameters["redirect_uri"],
            "code_verifier": asked.verifier,
        }
        return self._ask_for_tokens(form | parameters)

    def refresh(self, refresh_token: str, **parameters: str | None) -> Any:
        """The token endpoint's answer to a refresh token."""
        return self._ask_for_tokens({"grant_type": "refresh_token", "refresh_token": refresh_token} | parameters)

    def tokens(self, answer: Any, asked: Asked) -> Tokens:
        """What a sign-in brought, however it comes: a code is redeemed, an ID token verified against the request."""
        response_type = set(asked.parameters["response_type"].split())
        if response_type == {"code"}:
            redeemed = self.redeem(self.code(answer, asked), asked)
            assert redeemed.status_int == 200, shown(redeemed)
            members = redeemed.json
        else:
            members = self.read(answer, asked)
            fronted = {"token_type", "access_token"} if "token" in response_type else set()
            assert set(members) >= fronted | {"id_token", "expires_in", "scope"}, shown(answer)
            assert ("access_token" in members) == ("token" in response_type), shown(answer)
            assert "refresh_token" not in members, shown(answer)
        claims = self.check_id_token(
            members["id_token"], asked, access_token=members.get("access_token"), code=members.get("code")
        )
        return Tokens(members, claims)

    def check_id_token(
        self, text: str, asked: Asked | None = None, *, access_token: str | None = None, code: str | None = None
    ) -> dict[str, Any]:
        """The claims of an ID token, once everything holds that OpenID Connect Core §3.1.3.7 and §3.2.2.11 ask for.

        ``asked`` is the request that it answers; None for a token of a refresh, which repeats an earlier sign-in.
        """
        header, claims = verified(text, self.client.keys().json["keys"])
        assert header["alg"] == "RS256"
        assert header.get("typ") in (None, "JWT")
        assert claims["iss"] == self.client.issuer_url
        assert claims["aud"] in (self.client_id, [self.client_id])
        assert claims["azp"] == self.client_id
        now = self.now()
        assert claims["iat"] <= now < claims["exp"]
        assert isinstance(claims["sub"], str)
        assert claims["sub"]
        if asked is not None:
            assert claims["sid"]
            assert claims.get("nonce") == asked.parameters.get("nonce")
            if "max_age" in asked.parameters:
                assert now - claims["auth_time"] <= int(asked.parameters["max_age"])
        if access_token is not None:
            assert claims["at_hash"] == half_hash(access_token)
        if code is not None:
            assert claims["c_hash"] == half_hash(code)
        return claims

    def userinfo(self, tokens: Tokens) -> dict[str, Any]:
        """The claims that userinfo tells, about the very subject of the ID token (OpenID Connect Core §5.3.2)."""
        answer = self.client.userinfo(tokens.access_token)
        assert answer.status_int == 200, shown(answer)
        members: dict[str, Any] = answer.json
        assert members["sub"] == tokens.claims["sub"], shown(answer)
        return members

    def logout_url(self, id_token: str | None = None, **parameters: str | None) -> str:
        """Where to send the browser to sign out and come back; parameters replace the right ones, None leaves out."""
        right = {"id_token_hint": id_token, "post_logout_redirect_uri": self.post_logout_redirect_uri} | parameters
        query = urlencode({name: value for name, value in right.items() if value is not None})
        endpoint: str = self.client.discovery["end_session_endpoint"]
        return f"{endpoint}?{query}" if query else endpoint

    def _ask_for_tokens(self, form: Mapping[str, str | None]) -> Any:
        given = {name: value for name, value in form.items() if value is not None}
        if self.authentication_method == "client_secret_basic":
            return self.client.token(given, {"Authorization": self.credentials.header})
        given = {"client_id": self.client_id, **given}
        return self.client.token(given if self.secret is None else {**given, "client_secret": self.secret})


def _redirected(answer: Any, uri: str, mode: str) -> list[tuple[str, str]]:
    """The members in the Location, which is the redirect URI, letter by letter, and nothing else."""
    assert answer.status_int == 303, shown(answer)
    location = answer.headers["Location"]
    separator = "#" if mode == "fragment" else "&" if "?" in uri else "?"
    assert location.startswith(uri + separator), shown(answer)
    encoded = location.removeprefix(uri + separator)
    assert "#" not in encoded, shown(answer)
    return parse_qsl(encoded, keep_blank_values=True, strict_parsing=True, errors="strict")


def _posted(answer: Any, uri: str) -> list[tuple[str, str]]:
    """The fields of the page that posts them (OAuth 2.0 Form Post Response Mode)."""
    assert answer.status_int == 200, shown(answer)
    assert answer.content_type == "text/html", shown(answer)
    forms = answer.html.find_all("form", method="post")
    assert [form["action"] for form in forms] == [uri], shown(answer)
    return [(field["name"], field["value"]) for field in forms[0].find_all("input", type="hidden")]


def s256(verifier: str) -> str:
    """The PKCE challenge of a verifier (RFC 7636 §4.2)."""
    return _base64url(hashlib.sha256(verifier.encode()).digest())


def half_hash(token: str) -> str:
    """at_hash or c_hash for RS256: the left half of the SHA-256 (OpenID Connect Core §3.1.3.6)."""
    return _base64url(hashlib.sha256(token.encode()).digest()[:16])


def verified(token: str, keys: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and claims of a JWT whose RS256 signature holds under one of these published keys.

    Written from the RFCs alone, so that the service is not checked by its own code. Raises InvalidSignature.
    """
    signing_input, _, signature = token.rpartition(".")
    header, claims = (json.loads(_bytes(part)) for part in signing_input.split("."))
    assert header["alg"] == "RS256", header
    (key,) = (one for one in keys if one["kid"] == header["kid"])
    assert key["kty"] == "RSA"
    numbers = RSAPublicNumbers(*(int.from_bytes(_bytes(key[name])) for name in ("e", "n")))
    numbers.public_key().verify(_bytes(signature), signing_input.encode(), padding.PKCS1v15(), hashes.SHA256())
    return header, claims


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
