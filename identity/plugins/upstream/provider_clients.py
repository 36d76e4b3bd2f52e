"""The client side of an upstream sign-in: authorization requests and code exchange."""

from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from identity.api.crypto import ExternalKey, PrivateKey, SignatureAlgorithm, UnverifiedToken, new_token, sign_jwt
from identity.api.entities import UpstreamAuthentication, UpstreamKind, UpstreamProvider
from identity.api.sign_in import Acr
from identity.plugins.upstream.http_client import ProviderHttpSession, ProviderResponseError, parse_json_object
from identity.plugins.upstream.id_tokens import (
    IdTokenExpectations,
    is_recently_authenticated,
    verify_access_token_hash,
    verify_id_token,
)
from identity.plugins.upstream.provider_metadata import ProviderMetadata, ProviderMetadataCache

_ASSERTION_LIFETIME = timedelta(seconds=60)
_CLIENT_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
#: Authentication methods of RFC 8176 §2; other values are ignored.
_AMR_VALUES = frozenset(
    "face fpt geo hwk iris kba mca mfa otp pin pop pwd rba retina sc sms swk tel user vbm wia".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationState:
    """The state of an authorization request. ``requires_reauthentication`` if the user must authenticate again."""

    state: str = field(repr=False)
    nonce: str = field(repr=False)
    code_verifier: str = field(repr=False)
    redirect_uri: str
    started_at: datetime
    requires_reauthentication: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalUser:
    """An upstream identity, identified by issuer and subject only. ``id_token`` is the hint of a later logout.
    ``unsigned_claims`` are what the browser sent with the response, as the person likes.
    ``is_recently_authenticated`` is True if the provider states an authentication since the redirect."""

    issuer: str
    subject: str
    claims: Mapping[str, Any]
    unsigned_claims: Mapping[str, Any] = field(default_factory=dict)
    is_recently_authenticated: bool = False
    id_token: str = field(default="", repr=False)

    @property
    def profile_claims(self) -> Mapping[str, Any]:
        """The claims with the unsigned ones, for the person's own profile."""
        return {**self.unsigned_claims, **self.claims}

    @property
    def authentication_methods(self) -> tuple[str, ...]:
        """The authentication methods that the provider states (RFC 8176)."""
        amr, context = self.claims.get("amr"), self.claims.get("acr")
        listed = [item for item in amr if isinstance(item, str)] if isinstance(amr, list) else []
        if context in (Acr.TWO_FACTORS, Acr.PHISHING_RESISTANT):
            listed.append("mfa")
        return tuple(fromkey for fromkey in dict.fromkeys(listed) if fromkey in _AMR_VALUES)

    @property
    def verified_email(self) -> str:
        """The email address that the provider has verified; empty for none."""
        email = self.claims.get("email")
        verified = self.claims.get("email_verified")
        # Apple sends the boolean as a string.
        return email if isinstance(email, str) and (verified is True or verified == "true") else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamClientCredentials:
    """The service's credentials at the provider: the client secret, or the service's signing key and its id."""

    client_secret: str = field(repr=False)
    key_id: str
    signing_key: PrivateKey | ExternalKey = field(repr=False)


class ProviderClient(ABC):
    def __init__(self, provider: UpstreamProvider, known: ProviderMetadataCache, asking: ProviderHttpSession) -> None:
        self.provider = provider
        self._known = known
        self._asking = asking

    @abstractmethod
    def authorization_url(self, begun: AuthorizationState, *, login_hint: str = "", ui_locales: str = "") -> str:
        """The authorization request. Raises ProviderUnreachable, ProviderResponseError."""

    @abstractmethod
    def verify_issuer(self, issuer: str | None) -> None:
        """Raise ProviderResponseError for another provider's response (RFC 9207)."""

    @abstractmethod
    def exchange_code(
        self, code: str, begun: AuthorizationState, credentials: UpstreamClientCredentials, now: datetime
    ) -> ExternalUser:
        """The user of the code. Raises ProviderUnreachable, ProviderResponseError."""

    @abstractmethod
    def probe_credentials(
        self, redirect_uri: str, credentials: UpstreamClientCredentials, now: datetime
    ) -> tuple[int, str]:
        """Status and error code with which the token endpoint refuses a code that never existed: only a provider that
        accepts the client complains about the code. Raises ProviderUnreachable, ProviderResponseError."""

    def end_session_endpoint(self) -> str:
        """The end session endpoint; empty if there is none. Raises ProviderUnreachable, ProviderResponseError."""
        return ""


class OpenIdProviderClient(ProviderClient):
    """An OpenID provider (OpenID Connect Core §3.1), with the deviations of some providers."""

    def authorization_url(self, begun: AuthorizationState, *, login_hint: str = "", ui_locales: str = "") -> str:
        further: dict[str, str] = {"nonce": begun.nonce}
        if self.provider.kind is UpstreamKind.APPLE:
            further["response_mode"] = "form_post"
        if begun.requires_reauthentication:
            further |= {"prompt": "login", "max_age": "0"}
        further |= {name: value for name, value in (("login_hint", login_hint), ("ui_locales", ui_locales)) if value}
        return build_authorization_url(
            self._metadata.authorization_endpoint, self.provider, self.requested_scopes, begun, further
        )

    def verify_issuer(self, issuer: str | None) -> None:
        metadata = self._metadata
        if issuer is None and metadata.sends_issuer:
            raise ProviderResponseError("the answer does not say who gave it")
        if issuer is not None and issuer != metadata.issuer:
            raise ProviderResponseError("another provider gave the answer")

    def exchange_code(
        self, code: str, begun: AuthorizationState, credentials: UpstreamClientCredentials, now: datetime
    ) -> ExternalUser:
        metadata = self._metadata
        form = token_request_form(code, begun)
        form, headers = self._authenticate_form(form, metadata, credentials, now)
        answer = self._asking.post_form(metadata.token_endpoint, form, headers)
        access_token = read_access_token(answer)
        expected = IdTokenExpectations(
            client_id=self.provider.client_id,
            nonce=begun.nonce,
            now=now,
            since=begun.started_at if begun.requires_reauthentication else None,
        )
        text = answer.get("id_token")
        claims = verify_id_token(text, metadata, self._fetch_keys, expected)
        verify_access_token_hash(
            claims, access_token, UnverifiedToken.parse(str(text), max_length=len(str(text))).header["alg"]
        )
        subject: str = claims["sub"]
        return ExternalUser(
            issuer=metadata.issuer,
            subject=subject,
            claims=self._with_verified_email({**self._fetch_userinfo(metadata, access_token, subject), **claims}),
            is_recently_authenticated=is_recently_authenticated(claims, begun.started_at),
            id_token=str(text),
        )

    def probe_credentials(
        self, redirect_uri: str, credentials: UpstreamClientCredentials, now: datetime
    ) -> tuple[int, str]:
        form = token_request_form(new_token(), _new_state(redirect_uri, now))
        form, headers = self._authenticate_form(form, self._metadata, credentials, now)
        return self._asking.post_form_for_error(self._metadata.token_endpoint, form, headers)

    def end_session_endpoint(self) -> str:
        return self._metadata.end_session_endpoint

    @property
    def requested_scopes(self) -> str:
        """The scopes of authorization requests, separated by spaces."""
        usual = "name email" if self.provider.kind is UpstreamKind.APPLE else "profile email"
        scopes = (self.provider.scopes or usual).split()
        return " ".join(dict.fromkeys(["openid", *scopes]))

    @property
    def _metadata(self) -> ProviderMetadata:
        return self._known.fetch_metadata(self.provider.effective_issuer, self._asking)

    def _fetch_keys(self, missing: bool) -> Any:
        return self._known.fetch_keys(
            self._metadata.jwks_uri,
            self._asking,
            is_key_missing=missing,
            organization_id=self.provider.organization_id,
        )

    def _fetch_userinfo(self, metadata: ProviderMetadata, access_token: str, subject: str) -> Mapping[str, Any]:
        """UserInfo claims (§5.3); their subject must be that of the ID token."""
        if not metadata.userinfo_endpoint:
            return {}
        claims = self._asking.get_object(metadata.userinfo_endpoint, token=access_token)
        if claims.get("sub") != subject:
            raise ProviderResponseError("user info is about another user than the ID token")
        return claims

    def _with_verified_email(self, claims: Mapping[str, Any]) -> Mapping[str, Any]:
        """Entra says with an optional claim of its own that the directory has verified the address's domain."""
        if self.provider.kind is not UpstreamKind.ENTRA or claims.get("xms_edov") not in (True, 1, "1", "true"):
            return claims
        return {"email_verified": True, **claims}

    def _authenticate_form(
        self, form: dict[str, str], metadata: ProviderMetadata, credentials: UpstreamClientCredentials, now: datetime
    ) -> tuple[dict[str, str], dict[str, str]]:
        provider = self.provider
        if provider.kind is UpstreamKind.APPLE:
            return {
                **form,
                **client_secret_post_form(
                    provider, _create_apple_client_secret(provider, credentials.client_secret, now)
                ),
            }, {}
        if provider.authentication is UpstreamAuthentication.CLIENT_SECRET_POST:
            return {**form, **client_secret_post_form(provider, credentials.client_secret)}, {}
        if provider.authentication is UpstreamAuthentication.CLIENT_SECRET_BASIC:
            return form, {"Authorization": _client_secret_basic_header(provider.client_id, credentials.client_secret)}
        assertion = _create_client_assertion(provider.client_id, metadata.token_endpoint, credentials, now)
        named = {"client_id": provider.client_id, "client_assertion_type": _CLIENT_ASSERTION}
        return {**form, **named, "client_assertion": assertion}, {}


class GitHubProviderClient(ProviderClient):
    """GitHub, which supports only OAuth: its API identifies the user."""

    def authorization_url(self, begun: AuthorizationState, *, login_hint: str = "", ui_locales: str = "") -> str:
        further = {"login": login_hint} if login_hint else {}
        scopes = self.provider.scopes or "read:user user:email"
        return build_authorization_url(f"{self._base_url}/login/oauth/authorize", self.provider, scopes, begun, further)

    def verify_issuer(self, issuer: str | None) -> None:
        if issuer is not None and issuer.removesuffix("/login/oauth") != self._base_url:
            raise ProviderResponseError("another provider gave the answer")

    def exchange_code(
        self, code: str, begun: AuthorizationState, credentials: UpstreamClientCredentials, now: datetime
    ) -> ExternalUser:
        form = {**token_request_form(code, begun), **client_secret_post_form(self.provider, credentials.client_secret)}
        access_token = read_access_token(self._asking.post_form(f"{self._base_url}/login/oauth/access_token", form, {}))
        profile = self._asking.get_object(f"{self._api_url}/user", token=access_token)
        subject = profile.get("id")
        if not isinstance(subject, int) or isinstance(subject, bool):
            raise ProviderResponseError("GitHub names nobody")
        email = self._verified_email(access_token)
        claims = {
            "preferred_username": profile.get("login"),
            "name": profile.get("name"),
            "picture": profile.get("avatar_url"),
            "profile": profile.get("html_url"),
            **({"email": email, "email_verified": True} if email else {}),
        }
        present_claims = {name: value for name, value in claims.items() if value}
        return ExternalUser(issuer=self._base_url, subject=str(subject), claims={**present_claims, "sub": str(subject)})

    def probe_credentials(
        self, redirect_uri: str, credentials: UpstreamClientCredentials, now: datetime
    ) -> tuple[int, str]:
        form = token_request_form(new_token(), _new_state(redirect_uri, now))
        form |= client_secret_post_form(self.provider, credentials.client_secret)
        return self._asking.post_form_for_error(f"{self._base_url}/login/oauth/access_token", form, {})

    def _verified_email(self, access_token: str) -> str:
        """The verified primary address; the profile may show any."""
        body = self._asking.get(f"{self._api_url}/user/emails", token=access_token)
        listed = parse_json_object(b'{"emails":' + body + b"}")["emails"]
        for item in listed if isinstance(listed, list) else []:
            if isinstance(item, dict) and item.get("primary") is True and item.get("verified") is True:
                return str(item.get("email", ""))
        return ""

    @property
    def _base_url(self) -> str:
        return self.provider.effective_issuer.rstrip("/")

    @property
    def _api_url(self) -> str:
        return (
            "https://api.github.com"
            if self._base_url == UpstreamProvider.ISSUERS[UpstreamKind.GITHUB]
            else f"{self._base_url}/api/v3"
        )


def _new_state(redirect_uri: str, now: datetime) -> AuthorizationState:
    """The state of a request that no browser makes."""
    return AuthorizationState(
        state=new_token(), nonce=new_token(), code_verifier=new_token(), redirect_uri=redirect_uri, started_at=now
    )


def create_provider_client(
    provider: UpstreamProvider, known: ProviderMetadataCache, asking: ProviderHttpSession
) -> ProviderClient:
    """The client for the provider's kind."""
    kind = GitHubProviderClient if provider.kind is UpstreamKind.GITHUB else OpenIdProviderClient
    return kind(provider, known, asking)


def build_authorization_url(
    endpoint: str, provider: UpstreamProvider, scopes: str, begun: AuthorizationState, further: Mapping[str, str]
) -> str:
    """The authorization request (RFC 6749 §4.1.1), with PKCE (RFC 7636)."""
    # Slow to import, and needed for upstream sign-ins only.
    from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
    from authlib.oauth2.rfc7636 import create_s256_code_challenge

    address: str = prepare_grant_uri(
        endpoint,
        provider.client_id,
        "code",
        redirect_uri=begun.redirect_uri,
        scope=scopes,
        state=begun.state,
        code_challenge=create_s256_code_challenge(begun.code_verifier),
        code_challenge_method="S256",
        **further,
    )
    return address


def token_request_form(code: str, begun: AuthorizationState) -> dict[str, str]:
    """The token request (RFC 6749 §4.1.3), without client authentication."""
    return {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": begun.redirect_uri,
        "code_verifier": begun.code_verifier,
    }


def read_access_token(answer: Mapping[str, Any]) -> str:
    """The access token in a response. Raises ProviderResponseError."""
    token, kind = answer.get("access_token"), answer.get("token_type")
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token:
        raise ProviderResponseError("the provider gave no access token")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise ProviderResponseError("the provider gave no bearer token")
    return token


def client_secret_post_form(provider: UpstreamProvider, secret: str) -> dict[str, str]:
    """client_secret_post (RFC 6749 §2.3.1)."""
    return {"client_id": provider.client_id, "client_secret": secret}


def _client_secret_basic_header(client_id: str, secret: str) -> str:
    """client_secret_basic (RFC 6749 §2.3.1): both form-encoded first."""
    return "Basic " + b64encode(f"{quote(client_id, safe='')}:{quote(secret, safe='')}".encode()).decode()


def _create_client_assertion(
    client_id: str, audience: str, credentials: UpstreamClientCredentials, now: datetime
) -> str:
    """private_key_jwt (OpenID Connect Core §9); its type prevents any other use."""
    made_at = int(now.timestamp())
    claims = {
        "iss": client_id,
        "sub": client_id,
        "aud": audience,
        "iat": made_at,
        "exp": made_at + int(_ASSERTION_LIFETIME.total_seconds()),
        "jti": new_token(),
    }
    typ = "client-authentication+jwt"
    return sign_jwt(claims, credentials.signing_key, key_id=credentials.key_id, typ=typ)


def _create_apple_client_secret(provider: UpstreamProvider, key: str, now: datetime) -> str:
    """Apple's client secret: a token signed with Apple's key for this client."""
    made_at = int(now.timestamp())
    claims = {
        "iss": provider.team_id,
        "iat": made_at,
        "exp": made_at + int(_ASSERTION_LIFETIME.total_seconds()) * 5,
        "aud": provider.effective_issuer,
        "sub": provider.client_id,
    }
    return sign_jwt(claims, PrivateKey.from_pem(key, SignatureAlgorithm.ES256), key_id=provider.key_id)
