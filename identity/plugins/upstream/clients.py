"""The client side of a sign-in elsewhere: where people are sent, and what is made of the code that they bring back."""

from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from identity.crypto import jwt
from identity.crypto.key_sets import read_elliptic_key
from identity.crypto.keys import PrivateKey
from identity.crypto.secrets import new_token
from identity.domain.authentication import PHISHING_RESISTANT, TWO_FACTORS
from identity.domain.upstream_providers import ISSUERS, UpstreamAuthentication, UpstreamKind, UpstreamProvider
from identity.plugins.upstream.asking import Asking, Refusal, read_object
from identity.plugins.upstream.id_tokens import Expected, check_access_token_hash, check_id_token, is_just_now
from identity.plugins.upstream.metadata import Known, Metadata

_ASSERTION_LIFETIME = timedelta(seconds=60)
_CLIENT_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
#: What others can say of how somebody proved who they are (RFC 8176 §2); words of their own mean nothing here.
_METHODS = frozenset(
    "face fpt geo hwk iris kba mca mfa otp pin pop pwd rba retina sc sms swk tel user vbm wia".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A sign-in that was begun at a provider. ``anew`` if somebody was to prove there who they are, just now."""

    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)
    redirect_uri: str
    at: datetime
    anew: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Somebody:
    """Who signed in elsewhere: known by issuer and subject, by nothing else. ``id_token`` serves to sign out there.

    ``just_now`` is True if the provider says that they proved who they are since they were sent there.
    """

    issuer: str
    subject: str
    claims: Mapping[str, Any]
    just_now: bool = False
    id_token: str = field(default="", repr=False)

    @property
    def methods(self) -> tuple[str, ...]:
        """How they proved it there, as the provider says (RFC 8176)."""
        said, context = self.claims.get("amr"), self.claims.get("acr")
        listed = [one for one in said if isinstance(one, str)] if isinstance(said, list) else []
        if context in (TWO_FACTORS, PHISHING_RESISTANT):
            listed.append("mfa")
        return tuple(one for one in dict.fromkeys(listed) if one in _METHODS)

    @property
    def verified_email(self) -> str:
        """The address that the provider says it has verified; empty for none."""
        email = self.claims.get("email")
        verified = self.claims.get("email_verified")
        # Apple sends texts.
        return email if isinstance(email, str) and (verified is True or verified == "true") else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """By what the service is known there: the client secret, and the service's own signing key with its id."""

    secret: str = field(repr=False)
    key_id: str
    key: PrivateKey = field(repr=False)


class Client(ABC):
    """One provider, as its client."""

    def __init__(self, provider: UpstreamProvider, known: Known, asking: Asking) -> None:
        self.provider = provider
        self._known = known
        self._asking = asking

    @abstractmethod
    def address(self, begun: Begun, *, login_hint: str = "", ui_locales: str = "") -> str:
        """Where the person is sent. Raises Unreachable, Refusal."""

    @abstractmethod
    def refuse_mixed_up(self, issuer: str | None) -> None:
        """Raise Refusal for an answer that another provider gave, by what it calls itself (RFC 9207)."""

    @abstractmethod
    def redeem(self, code: str, begun: Begun, credentials: Credentials, now: datetime) -> Somebody:
        """Who brought the code. Raises Unreachable, Refusal."""

    def sign_out_address(self) -> str:
        """Where people sign out there; empty if there is no such page. Raises Unreachable, Refusal."""
        return ""


class OpenIdClient(Client):
    """An OpenID provider (OpenID Connect Core §3.1), with what some of them want differently."""

    def address(self, begun: Begun, *, login_hint: str = "", ui_locales: str = "") -> str:
        """Where the person is sent."""
        further: dict[str, str] = {"nonce": begun.nonce}
        if self.provider.kind is UpstreamKind.APPLE:
            further["response_mode"] = "form_post"
        if begun.anew:
            further |= {"prompt": "login", "max_age": "0"}
        further |= {name: value for name, value in (("login_hint", login_hint), ("ui_locales", ui_locales)) if value}
        return authorization_address(self._metadata.authorization_endpoint, self.provider, self._scopes, begun, further)

    def refuse_mixed_up(self, issuer: str | None) -> None:
        """Raise Refusal for what another provider answered."""
        metadata = self._metadata
        if issuer is None and metadata.names_itself:
            raise Refusal("the answer does not say who gave it")
        if issuer is not None and issuer != metadata.issuer:
            raise Refusal("another provider gave the answer")

    def redeem(self, code: str, begun: Begun, credentials: Credentials, now: datetime) -> Somebody:
        """Who brought the code."""
        metadata = self._metadata
        form = code_form(code, begun)
        form, headers = self._authenticated(form, metadata, credentials, now)
        answer = self._asking.post_form(metadata.token_endpoint, form, headers)
        access_token = access_token_in(answer)
        expected = Expected(
            client_id=self.provider.client_id, nonce=begun.nonce, now=now, since=begun.at if begun.anew else None
        )
        text = answer.get("id_token")
        claims = check_id_token(text, metadata, self._keys, expected)
        check_access_token_hash(claims, access_token, jwt.inspect(str(text), max_length=len(str(text))).header["alg"])
        subject: str = claims["sub"]
        return Somebody(
            issuer=metadata.issuer,
            subject=subject,
            claims={**self._userinfo(metadata, access_token, subject), **claims},
            just_now=is_just_now(claims, begun.at),
            id_token=str(text),
        )

    def sign_out_address(self) -> str:
        """Where people sign out there."""
        return self._metadata.end_session_endpoint

    @property
    def _metadata(self) -> Metadata:
        return self._known.metadata(self.provider.known_as, self._asking)

    @property
    def _scopes(self) -> str:
        usual = "openid name email" if self.provider.kind is UpstreamKind.APPLE else "openid profile email"
        words = (self.provider.scopes or usual).split()
        return " ".join(dict.fromkeys(["openid", *words]))

    def _keys(self, missing: bool) -> Any:
        return self._known.keys(self._metadata.jwks_uri, self._asking, missing=missing)

    def _userinfo(self, metadata: Metadata, access_token: str, subject: str) -> Mapping[str, Any]:
        """What the provider tells besides (§5.3): of this very person, or nothing counts."""
        if not metadata.userinfo_endpoint:
            return {}
        told = self._asking.get_object(metadata.userinfo_endpoint, token=access_token)
        if told.get("sub") != subject:
            raise Refusal("user info tells of somebody else than the ID token")
        return told

    def _authenticated(
        self, form: dict[str, str], metadata: Metadata, credentials: Credentials, now: datetime
    ) -> tuple[dict[str, str], dict[str, str]]:
        provider = self.provider
        if provider.kind is UpstreamKind.APPLE:
            return {**form, **secret_form(provider, _secret_of_apple(provider, credentials.secret, now))}, {}
        if provider.authentication is UpstreamAuthentication.CLIENT_SECRET_POST:
            return {**form, **secret_form(provider, credentials.secret)}, {}
        if provider.authentication is UpstreamAuthentication.CLIENT_SECRET_BASIC:
            return form, {"Authorization": _basic(provider.client_id, credentials.secret)}
        assertion = _assertion(provider.client_id, metadata.token_endpoint, credentials, now)
        named = {"client_id": provider.client_id, "client_assertion_type": _CLIENT_ASSERTION}
        return {**form, **named, "client_assertion": assertion}, {}


class GitHubClient(Client):
    """GitHub, which speaks OAuth alone: who somebody is its API tells."""

    def address(self, begun: Begun, *, login_hint: str = "", ui_locales: str = "") -> str:
        """Where the person is sent."""
        further = {"login": login_hint} if login_hint else {}
        scopes = self.provider.scopes or "read:user user:email"
        return authorization_address(f"{self._root}/login/oauth/authorize", self.provider, scopes, begun, further)

    def refuse_mixed_up(self, issuer: str | None) -> None:
        """Raise Refusal for what another provider answered."""
        if issuer is not None and issuer.removesuffix("/login/oauth") != self._root:
            raise Refusal("another provider gave the answer")

    def redeem(self, code: str, begun: Begun, credentials: Credentials, now: datetime) -> Somebody:
        """Who brought the code."""
        form = {**code_form(code, begun), **secret_form(self.provider, credentials.secret)}
        access_token = access_token_in(self._asking.post_form(f"{self._root}/login/oauth/access_token", form, {}))
        told = self._asking.get_object(f"{self._api}/user", token=access_token)
        subject = told.get("id")
        if not isinstance(subject, int) or isinstance(subject, bool):
            raise Refusal("GitHub names nobody")
        email = self._verified_email(access_token)
        claims = {
            "preferred_username": told.get("login"),
            "name": told.get("name"),
            "picture": told.get("avatar_url"),
            "profile": told.get("html_url"),
            **({"email": email, "email_verified": True} if email else {}),
        }
        said = {name: value for name, value in claims.items() if value}
        return Somebody(issuer=self._root, subject=str(subject), claims={**said, "sub": str(subject)})

    def _verified_email(self, access_token: str) -> str:
        """The primary address, if it is verified; the profile may show any."""
        body = self._asking.get(f"{self._api}/user/emails", token=access_token)
        listed = read_object(b'{"emails":' + body + b"}")["emails"]
        for one in listed if isinstance(listed, list) else []:
            if isinstance(one, dict) and one.get("primary") is True and one.get("verified") is True:
                return str(one.get("email", ""))
        return ""

    @property
    def _root(self) -> str:
        return self.provider.known_as.rstrip("/")

    @property
    def _api(self) -> str:
        return "https://api.github.com" if self._root == ISSUERS[UpstreamKind.GITHUB] else f"{self._root}/api/v3"


def client_of(provider: UpstreamProvider, known: Known, asking: Asking) -> Client:
    """The client of a provider, by its kind."""
    kind = GitHubClient if provider.kind is UpstreamKind.GITHUB else OpenIdClient
    return kind(provider, known, asking)


def authorization_address(
    endpoint: str, provider: UpstreamProvider, scopes: str, begun: Begun, further: Mapping[str, str]
) -> str:
    """The authorization request (RFC 6749 §4.1.1), with PKCE (RFC 7636)."""
    # It is needed by those alone who sign in elsewhere, and takes a while to load.
    from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
    from authlib.oauth2.rfc7636 import create_s256_code_challenge

    address: str = prepare_grant_uri(
        endpoint,
        provider.client_id,
        "code",
        redirect_uri=begun.redirect_uri,
        scope=scopes,
        state=begun.state,
        code_challenge=create_s256_code_challenge(begun.verifier),
        code_challenge_method="S256",
        **further,
    )
    return address


def code_form(code: str, begun: Begun) -> dict[str, str]:
    """The token request (RFC 6749 §4.1.3), without what proves who asks."""
    return {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": begun.redirect_uri,
        "code_verifier": begun.verifier,
    }


def access_token_in(answer: Mapping[str, Any]) -> str:
    """The access token that was given. Raises Refusal."""
    token, kind = answer.get("access_token"), answer.get("token_type")
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token:
        raise Refusal("the provider gave no access token")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise Refusal("the provider gave no bearer token")
    return token


def secret_form(provider: UpstreamProvider, secret: str) -> dict[str, str]:
    """client_secret_post (RFC 6749 §2.3.1)."""
    return {"client_id": provider.client_id, "client_secret": secret}


def _basic(client_id: str, secret: str) -> str:
    """client_secret_basic (RFC 6749 §2.3.1): both form-encoded first."""
    return "Basic " + b64encode(f"{quote(client_id, safe='')}:{quote(secret, safe='')}".encode()).decode()


def _assertion(client_id: str, audience: str, credentials: Credentials, now: datetime) -> str:
    """private_key_jwt (OpenID Connect Core §9); its type keeps it from being taken for anything else."""
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
    return jwt.sign(claims, credentials.key, algorithm="RS256", key_id=credentials.key_id, typ=typ)


def _secret_of_apple(provider: UpstreamProvider, key: str, now: datetime) -> str:
    """What Apple takes as a client secret: a token that its own key has signed."""
    made_at = int(now.timestamp())
    claims = {
        "iss": provider.team_id,
        "iat": made_at,
        "exp": made_at + int(_ASSERTION_LIFETIME.total_seconds()) * 5,
        "aud": provider.known_as,
        "sub": provider.client_id,
    }
    return jwt.sign_elliptic(claims, read_elliptic_key(key), key_id=provider.key_id)
