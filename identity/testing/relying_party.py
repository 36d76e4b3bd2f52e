"""RelyingParty: an application that signs people in with the service, and validates every response strictly."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from identity.domain.applications import ApplicationType
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.testing.browser import Browser
from identity.testing.jwt_assertions import left_half_hash, pkce_challenge, verify_jwt
from identity.testing.response_checks import format_response
from identity.testing.service_test_client import Credentials, ServiceTestClient
from identity.testing.world import World


@dataclass(frozen=True)
class SentAuthorizationRequest:
    """An authorization request that an application sent: its URL, and what the response must match."""

    endpoint: str
    parameters: Mapping[str, str]
    verifier: str | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"{self.endpoint}?{urlencode(self.parameters)}"

    @property
    def mode(self) -> str:
        """The response mode: as requested, else the default of the response type."""
        fronts = {"token", "id_token"} & set(self.parameters.get("response_type", "").split())
        return self.parameters.get("response_mode") or ("fragment" if fronts else "query")


@dataclass(frozen=True)
class ReceivedTokens:
    """The tokens of a sign-in; ``claims`` are those of the verified ID token.

    ``front_channel`` are the members of the authorization response; ``members`` those of the token endpoint's, or the
    same if there was no code.
    """

    members: Mapping[str, Any] = field(repr=False)
    claims: Mapping[str, Any]
    front_channel: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def access_token(self) -> str:
        """The access token."""
        token: str = self.members["access_token"]
        return token

    @property
    def id_token(self) -> str:
        """The encoded ID token."""
        token: str = self.members["id_token"]
        return token

    @property
    def refresh_token(self) -> str:
        """The refresh token; there is one only with offline_access."""
        token: str = self.members["refresh_token"]
        return token

    @property
    def scope(self) -> list[str]:
        """The granted scopes."""
        return str(self.members["scope"]).split()


class RelyingParty:
    """An application that signs people in here, and validates every response.

        party = RelyingParty.register(world)
        sent = party.open_request(browser, scope="openid email")
        tokens = party.obtain_tokens(browser.sign_in(login_name), sent)
        assert tokens.claims["sub"] == party.sign_in_silently(browser, prompt="none").claims["sub"] == person.id

    Methods that check raise AssertionError with the response. Responses of the token endpoint are returned
    unchecked.
    """

    def __init__(
        self,
        client: ServiceTestClient,
        client_id: str,
        secret: str | None,
        *,
        redirect_uri: str,
        now: Callable[[], int],
        authentication_method: str = "client_secret_basic",
        post_logout_redirect_uri: str | None = None,
        id_token_algorithm: str = SignatureAlgorithm.RS256,
    ) -> None:
        self.client = client
        self.client_id = client_id
        self.secret = secret
        self.redirect_uri = redirect_uri
        self.now = now
        self.authentication_method = authentication_method
        self.post_logout_redirect_uri = post_logout_redirect_uri
        self.id_token_algorithm = id_token_algorithm
        if secret is not None:
            client.secrets.add(secret)

    @classmethod
    def register(
        cls,
        world: World,
        *,
        redirect_uri: str = "https://app.example/cb",
        post_logout_redirect_uri: str = "https://app.example/bye",
        type: ApplicationType = ApplicationType.WEB,
        project_id: str | None = None,
        response_types: Iterable[str] = ("code", "id_token", "id_token token"),
        grant_types: Iterable[str] = ("authorization_code", "refresh_token"),
        authentication_method: str = "client_secret_basic",
        **members: Any,
    ) -> "RelyingParty":
        """A new application, by default in a new project and with all response types.

        It asks for no consent by default: most people in tests belong to other organizations.
        """
        application, secret = world.register_application(
            project_id,
            type=type,
            response_types=frozenset(response_types),
            grant_types=frozenset(grant_types),
            authentication_method=authentication_method,
            **{
                "redirect_uris": (redirect_uri,),
                "post_logout_redirect_uris": (post_logout_redirect_uri,),
                **members,
            },
        )
        return cls(
            world.client,
            application.id,
            secret,
            redirect_uri=redirect_uri,
            now=lambda: world.clock.seconds,
            authentication_method=authentication_method,
            post_logout_redirect_uri=post_logout_redirect_uri,
            id_token_algorithm=application.id_token_signed_response_alg or SignatureAlgorithm.RS256,
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

    def new_request(
        self, response_type: str | None = "code", scope: str | None = "openid", *, pkce: bool = True, **parameters: Any
    ) -> SentAuthorizationRequest:
        """A valid request with fresh state, nonce and PKCE; further parameters override these, None leaves one out."""
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
            right |= {"code_challenge": pkce_challenge(verifier), "code_challenge_method": "S256"}
        sent_parameters = {name: str(value) for name, value in (right | parameters).items() if value is not None}
        return SentAuthorizationRequest(self.client.discovery["authorization_endpoint"], sent_parameters, verifier)

    def check_response(
        self, response: Any, authorization: SentAuthorizationRequest, *, mode: str | None = None
    ) -> dict[str, str]:
        """The validated members of a response: delivered in the requested mode, with the same state and our issuer
        (RFC 9207).
        """
        pairs = self.read_response(response, authorization, mode or authorization.mode)
        members = dict(pairs)
        assert len(members) == len(pairs), f"a member stands twice: {format_response(response)}"
        assert members.pop("state", None) == authorization.parameters.get("state"), format_response(response)
        assert members.pop("iss", None) == self.client.issuer_url, format_response(response)
        for name in ("code", "access_token", "id_token"):
            if name in members:
                self.client.secrets.add(members[name])
        return members

    @staticmethod
    def read_response(response: Any, authorization: SentAuthorizationRequest, mode: str) -> list[tuple[str, str]]:
        """The members of a response in this mode as sent, with the headers that every response has."""
        assert response.headers.get("Cache-Control") == "no-store", format_response(response)
        assert response.headers.get("Referrer-Policy") == "no-referrer", format_response(response)
        assert response.headers.get("X-Content-Type-Options") == "nosniff", format_response(response)
        uri = authorization.parameters["redirect_uri"]
        return _read_form_post(response, uri) if mode == "form_post" else _redirected(response, uri, mode)

    def open_request(
        self, browser: Browser, response_type: str | None = "code", scope: str | None = "openid", **parameters: Any
    ) -> SentAuthorizationRequest:
        """Open a request from ``new_request`` in the browser; ``browser.page`` is the resulting response."""
        authorization = self.new_request(response_type, scope, **parameters)
        browser.open(authorization.url, initiator=self.origin)
        return authorization

    def sign_in_silently(self, browser: Browser, *scopes: str | None, **parameters: Any) -> ReceivedTokens:
        """The tokens from a request that needs no page."""
        authorization = self.open_request(browser, *scopes, **parameters)
        return self.obtain_tokens(browser.page, authorization)

    def expect_error_at_once(
        self, browser: Browser, error: str, *scopes: str | None, mode: str | None = None, **parameters: Any
    ) -> str:
        """Check that a request gets this error as its response without a page; returns its description."""
        authorization = self.open_request(browser, *scopes, **parameters)
        return self.check_error_response(browser.page, authorization, error, mode=mode)

    def check_error_response(
        self, answer: Any, authorization: SentAuthorizationRequest, error: str, *, mode: str | None = None
    ) -> str:
        """Check that the response is this error; returns its description."""
        members = self.check_response(answer, authorization, mode=mode)
        assert set(members) == {"error", "error_description"}, format_response(answer)
        assert members["error"] == error, format_response(answer)
        description = members["error_description"]
        # RFC 6749 §4.1.2.1
        assert description, format_response(answer)
        assert all(" " <= item <= "~" and item not in '"\\' for item in description), format_response(answer)
        return description

    def extract_code(self, answer: Any, authorization: SentAuthorizationRequest) -> str:
        """The code in the response, which contains nothing else."""
        members = self.check_response(answer, authorization)
        assert set(members) == {"code"}, format_response(answer)
        return members["code"]

    def redeem(self, code: str, authorization: SentAuthorizationRequest, **parameters: str | None) -> Any:
        """The token endpoint's response to a code; parameters override the valid ones, None leaves one out."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": authorization.parameters["redirect_uri"],
            "code_verifier": authorization.verifier,
        }
        return self._ask_for_tokens(form | parameters)

    def refresh(self, refresh_token: str, **parameters: str | None) -> Any:
        """The token endpoint's response to a refresh token."""
        return self._ask_for_tokens({"grant_type": "refresh_token", "refresh_token": refresh_token} | parameters)

    def obtain_tokens(self, answer: Any, authorization: SentAuthorizationRequest) -> ReceivedTokens:
        """The tokens in a response of any kind: a code is redeemed, each ID token validated against the request, and
        both must have the same issuer and subject (OpenID Connect Core §3.3.3.6).
        """
        response_type = set(authorization.parameters["response_type"].split())
        members: Mapping[str, Any] = self.check_response(answer, authorization)
        for name, member in (("code", "code"), ("id_token", "id_token"), ("token", "access_token")):
            assert (member in members) == (name in response_type), format_response(answer)
        if response_type == {"code"}:
            assert set(members) == {"code"}, format_response(answer)
        else:
            assert set(members) >= {"token_type", "expires_in", "scope"}, format_response(answer)
        assert "refresh_token" not in members, format_response(answer)
        front, claims = members, None
        if "id_token" in members:
            claims = self.check_id_token(
                members["id_token"], authorization, access_token=members.get("access_token"), code=members.get("code")
            )
        if "code" in members:
            redeemed = self.redeem(members["code"], authorization)
            assert redeemed.status_int == 200, format_response(redeemed)
            members, first = redeemed.json, claims
            claims = self.check_id_token(members["id_token"], authorization, access_token=members["access_token"])
            assert first is None or (first["iss"], first["sub"]) == (claims["iss"], claims["sub"])
        assert claims is not None, format_response(answer)
        return ReceivedTokens(members, claims, front)

    def check_id_token(
        self,
        text: str,
        authorization: SentAuthorizationRequest | None = None,
        *,
        access_token: str | None = None,
        code: str | None = None,
    ) -> dict[str, Any]:
        """The claims of an ID token, validated by OpenID Connect Core §3.1.3.7 and §3.2.2.11.

        ``authorization`` is the request that it belongs to; None for an ID token from a refresh, which repeats an
        earlier sign-in.
        """
        header, claims = verify_jwt(text, self.client.fetch_jwks().json["keys"])
        assert header["alg"] == self.id_token_algorithm
        assert header.get("typ") in (None, "JWT")
        assert claims["iss"] == self.client.issuer_url
        assert claims["aud"] in (self.client_id, [self.client_id])
        assert claims["azp"] == self.client_id
        now = self.now()
        assert claims["iat"] <= now < claims["exp"]
        assert isinstance(claims["sub"], str)
        assert claims["sub"]
        if authorization is not None:
            assert claims["sid"]
            assert claims.get("nonce") == authorization.parameters.get("nonce")
            if "max_age" in authorization.parameters:
                assert now - claims["auth_time"] <= int(authorization.parameters["max_age"])
        if access_token is not None:
            assert claims["at_hash"] == left_half_hash(access_token)
        if code is not None:
            assert claims["c_hash"] == left_half_hash(code)
        return claims

    def fetch_userinfo(self, tokens: ReceivedTokens) -> dict[str, Any]:
        """The claims from userinfo, whose subject must be the ID token's (OpenID Connect Core §5.3.2)."""
        answer = self.client.fetch_userinfo(tokens.access_token)
        assert answer.status_int == 200, format_response(answer)
        members: dict[str, Any] = answer.json
        assert members["sub"] == tokens.claims["sub"], format_response(answer)
        return members

    def logout_url(self, id_token: str | None = None, **parameters: str | None) -> str:
        """The URL to sign out and return; parameters override the valid ones, None leaves one out."""
        right = {"id_token_hint": id_token, "post_logout_redirect_uri": self.post_logout_redirect_uri} | parameters
        query = urlencode({name: value for name, value in right.items() if value is not None})
        endpoint: str = self.client.discovery["end_session_endpoint"]
        return f"{endpoint}?{query}" if query else endpoint

    def _ask_for_tokens(self, form: Mapping[str, str | None]) -> Any:
        sent_form = {name: value for name, value in form.items() if value is not None}
        if self.authentication_method == "client_secret_basic":
            return self.client.request_token(sent_form, {"Authorization": self.credentials.header})
        sent_form = {"client_id": self.client_id, **sent_form}
        return self.client.request_token(
            sent_form if self.secret is None else {**sent_form, "client_secret": self.secret}
        )


def _redirected(answer: Any, uri: str, mode: str) -> list[tuple[str, str]]:
    """The members in the Location, which must be exactly the redirect URI otherwise."""
    assert answer.status_int == 303, format_response(answer)
    location = answer.headers["Location"]
    separator = "#" if mode == "fragment" else "&" if "?" in uri else "?"
    assert location.startswith(uri + separator), format_response(answer)
    encoded = location.removeprefix(uri + separator)
    assert "#" not in encoded, format_response(answer)
    return parse_qsl(encoded, keep_blank_values=True, strict_parsing=True, errors="strict")


def _read_form_post(answer: Any, uri: str) -> list[tuple[str, str]]:
    """The fields of the page that posts them (OAuth 2.0 Form Post Response Mode)."""
    assert answer.status_int == 200, format_response(answer)
    assert answer.content_type == "text/html", format_response(answer)
    forms = answer.html.find_all("form", method="post")
    assert [form["action"] for form in forms] == [uri], format_response(answer)
    return [(field["name"], field["value"]) for field in forms[0].find_all("input", type="hidden")]
