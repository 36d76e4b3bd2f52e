"""Sign-in by authorization code with PKCE, for web applications with a session for each browser."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit

from identity_client.errors import InvalidToken, SignInFailed
from identity_client.tokens import NAMESPACE, RoleClaims

#: Names in the browser's session.
PENDING_KEY, SIGNED_IN_KEY = "identity_pending", "identity"
#: So many sign-ins can be under way in one browser, in several tabs; each takes space in a cookie.
MAX_PENDING = 3
#: Sessions may be cookies, which browsers drop silently above 4096 bytes.
MAX_STORED_ID_TOKEN = 2000
MAX_RETURN_TO = 500


class Session(Protocol):
    """What a browser's session must support: that of Starlette, Flask and Django do."""

    def get(self, key: str, default: Any, /) -> Any: ...
    def __setitem__(self, key: str, value: Any, /) -> None: ...


@dataclass(frozen=True)
class User(RoleClaims):
    """Who is signed in. ``id`` never changes; everything else may."""

    @property
    def id(self) -> str:
        return str(self.claims["sub"])

    @property
    def name(self) -> str:
        """A name to show; without the scope ``profile`` it is the id."""
        return str(self.claims.get("name") or self.id)

    @property
    def email(self) -> str | None:
        """The address, if the user has shown that mail to it arrives."""
        email = self.claims.get("email")
        return email if self.claims.get("email_verified") is True and isinstance(email, str) else None


@dataclass(frozen=True)
class SignedIn:
    """The result of a sign-in. ``tokens`` is the response of the token endpoint: store it outside the browser."""

    user: User
    id_token: str = field(repr=False)
    tokens: Mapping[str, Any] = field(repr=False)
    return_to: str


@dataclass(frozen=True)
class PendingSignIn:
    """What a browser's session keeps until the user comes back."""

    state: str
    nonce: str
    code_verifier: str
    redirect_uri: str
    return_to: str

    @classmethod
    def start(cls, session: Session, redirect_uri: str, return_to: str) -> "PendingSignIn":
        """Create one, and store it in the session."""
        fresh = [secrets.token_urlsafe(32) for _ in range(2)]
        pending = cls(fresh[0], fresh[1], secrets.token_urlsafe(48), redirect_uri, local_path(return_to))
        members = [pending.nonce, pending.code_verifier, redirect_uri, pending.return_to]
        known = list(_stored_pending(session).items())[-MAX_PENDING + 1 :]
        session[PENDING_KEY] = {**dict(known), pending.state: members}
        return pending

    @classmethod
    def finish(cls, session: Session, state: str) -> "PendingSignIn":
        """Take it out of the session: it works once. Raises SignInFailed if this browser started no such sign-in."""
        known = _stored_pending(session)
        members = known.pop(state, None)
        session[PENDING_KEY] = known
        if not isinstance(members, list) or len(members) != 4:
            raise SignInFailed("this browser started no such sign-in, or finished it already")
        return cls(state, *members)

    def authorization_url(self, endpoint: str, parameters: Mapping[str, str]) -> str:
        return with_query(
            endpoint,
            {
                "response_type": "code",
                "redirect_uri": self.redirect_uri,
                "state": self.state,
                "nonce": self.nonce,
                "code_challenge": code_challenge(self.code_verifier),
                "code_challenge_method": "S256",
                **parameters,
            },
        )


def code_challenge(verifier: str) -> str:
    """The challenge of PKCE with S256 (RFC 7636 §4.2)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def _stored_pending(session: Session) -> dict[str, Any]:
    stored = session.get(PENDING_KEY, None)
    return dict(stored) if isinstance(stored, Mapping) else {}


def callback_code(parameters: Mapping[str, str], issuer: str) -> str:
    """The code in the authorization response. Raises SignInFailed."""
    # A response of another issuer must not be redeemed here (RFC 9207). The service always sends iss.
    if not hmac.compare_digest(parameters.get("iss", "").encode(), issuer.encode()):
        raise SignInFailed("the response is of another issuer")
    if "error" in parameters:
        raise SignInFailed("the service refused the sign-in", parameters["error"][:100])
    if not parameters.get("code"):
        raise SignInFailed("the response has no code")
    return parameters["code"]


def local_path(path: str) -> str:
    """The path, if it leads to this application; otherwise ``/``.

    Browsers read a backslash as a slash, and skip tabs and line feeds; ``//`` begins another host.
    """
    is_local = path.startswith("/") and not path.startswith("//") and len(path) <= MAX_RETURN_TO
    return path if is_local and "\\" not in path and path.isprintable() else "/"


def store_user(session: Session, signed_in: SignedIn) -> None:
    """Remember the user in the browser's session, which may be a small cookie that its user can read."""
    user = signed_in.user
    claims = {name: user.claims[name] for name in ("sub", "name", "email", "email_verified") if name in user.claims}
    stored: dict[str, Any] = {
        "claims": claims,
        "roles": {role: sorted(user.organizations(role)) for role in sorted(user.roles)},
    }
    if len(signed_in.id_token) <= MAX_STORED_ID_TOKEN:
        stored["id_token"] = signed_in.id_token
    session[SIGNED_IN_KEY] = stored


def stored_user(session: Session, project_id: str) -> User | None:
    """Who is signed in; None if nobody is."""
    stored = session.get(SIGNED_IN_KEY, None)
    if not isinstance(stored, Mapping) or not isinstance(stored.get("claims"), Mapping):
        return None
    roles = {role: dict.fromkeys(granted, "") for role, granted in stored.get("roles", {}).items()}
    claims = {**stored["claims"], f"{NAMESPACE}:org:project:{project_id}:roles": roles}
    return User(claims, project_id)


def stored_id_token(session: Session) -> str | None:
    stored = session.get(SIGNED_IN_KEY, None)
    return stored.get("id_token") if isinstance(stored, Mapping) else None


def check_same_subject(id_claims: Mapping[str, Any], user_claims: Mapping[str, Any]) -> None:
    """Userinfo must be about the same user (OpenID Connect Core §5.3.2). Raises InvalidToken."""
    if user_claims.get("sub") != id_claims["sub"]:
        raise InvalidToken("userinfo is about another user")


def with_query(url: str, parameters: Mapping[str, str]) -> str:
    """The URL with more parameters."""
    parts = urlsplit(url)
    return parts._replace(query=urlencode([*parse_qsl(parts.query), *parameters.items()])).geturl()
