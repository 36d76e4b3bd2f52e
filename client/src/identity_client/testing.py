"""An issuer within the test process, which the clients ask in place of the service."""

import json
import time
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import RSAKey

from identity_client.sign_in import code_challenge, with_query
from identity_client.tokens import NAMESPACE

KEY_ID = "test"
_LIFETIME = 3600
_PATHS = {
    "authorization_endpoint": "/oauth/v2/authorize",
    "token_endpoint": "/oauth/v2/token",
    "introspection_endpoint": "/oauth/v2/introspect",
    "userinfo_endpoint": "/oidc/v1/userinfo",
    "end_session_endpoint": "/oidc/v1/end_session",
    "jwks_uri": "/oauth/v2/keys",
}


@cache
def signing_key() -> RSAKey:
    """One for the process: clients remember keys for longer than a test lasts."""
    return RSAKey.generate_key(2048, {"kid": KEY_ID, "use": "sig", "alg": "RS256"})


def role_claim(project_id: str, roles: Iterable[str], organization: str = "test-organization") -> dict[str, Any]:
    """The claim that grants the roles in the project."""
    granted = {role: {organization: "test.example.com"} for role in roles}
    return {f"{NAMESPACE}:org:project:{project_id}:roles": granted} if granted else {}


class TestIssuer:
    """Issues tokens, and answers the requests of ``IdentityClient``, ``AsyncIdentityClient`` and ``ServiceUser``.

    It believes every client and every key file. ``is_available = False`` makes it unreachable.
    """

    __test__ = False  # pytest must not collect it

    def __init__(self, url: str = "https://identity.test") -> None:
        self.url = url
        self.is_available = True
        #: All requests, newest last.
        self.requests: list[httpx.Request] = []
        #: Claims that replace those of ID tokens, or with None remove them, and ``typ`` in their header: applications
        #: must refuse wrong ones.
        self.id_token_claims: Mapping[str, Any] = {}
        self.id_token_type: str | None = None
        self._revoked: set[str] = set()
        self._codes: dict[str, tuple[dict[str, str], dict[str, Any]]] = {}
        self._users: dict[str, dict[str, Any]] = {}

    def access_token(
        self,
        project_id: str,
        *,
        subject: str = "test-user",
        roles: Iterable[str] = (),
        lifetime: int = _LIFETIME,
        **claims: Any,
    ) -> str:
        """A JWT access token for the API of a project. Introspection knows it too."""
        return self._sign(
            {
                "sub": subject,
                "aud": [project_id],
                "client_id": "test-client",
                "scope": "openid",
                **role_claim(project_id, roles),
                **claims,
            },
            lifetime,
            "at+jwt",
        )

    def revoke(self, token: str) -> None:
        """Introspection reports the token as inactive from now on; a client may remember it for some seconds."""
        self._revoked.add(token)

    def approve(self, location: str, *, subject: str = "test-user", **claims: Any) -> str:
        """Sign a user in at the address that the application redirected to; returns the address of the callback."""
        parameters = dict(parse_qsl(urlsplit(location).query))
        code = f"code-{len(self._codes)}"
        self._codes[code] = parameters, {"sub": subject, **claims}
        answer = {"code": code, "state": parameters["state"], "iss": self.url}
        return with_query(parameters["redirect_uri"], answer)

    def deny(self, location: str, error: str = "access_denied") -> str:
        """Refuse the sign-in; returns the address of the callback."""
        parameters = dict(parse_qsl(urlsplit(location).query))
        answer = {"error": error, "state": parameters["state"], "iss": self.url}
        return with_query(parameters["redirect_uri"], answer)

    def respond(self, request: httpx.Request) -> httpx.Response:
        """The response to a request of a client. Raises httpx.ConnectError if the issuer is not available."""
        self.requests.append(request)
        if not self.is_available:
            raise httpx.ConnectError("the test issuer is not available", request=request)
        status, members = self._members(request)
        return httpx.Response(status, json=members, request=request)

    def _members(self, request: httpx.Request) -> tuple[int, Mapping[str, Any]]:
        path = request.url.path
        if path.endswith("/.well-known/openid-configuration"):
            return 200, {"issuer": self.url, **{name: self.url + path for name, path in _PATHS.items()}}
        form = dict(parse_qsl(request.content.decode()))
        if path == _PATHS["jwks_uri"]:
            return 200, {"keys": [signing_key().as_dict(private=False)]}
        if path == _PATHS["introspection_endpoint"]:
            return 200, self._introspected(form.get("token", ""))
        if path == _PATHS["userinfo_endpoint"]:
            user = self._users.get(request.headers.get("Authorization", "").removeprefix("Bearer "))
            return (200, user) if user is not None else (401, {"error": "invalid_token"})
        if path == _PATHS["token_endpoint"]:
            return self._token(form)
        return 404, {"error": "not_found"}

    def _introspected(self, token: str) -> Mapping[str, Any]:
        try:
            claims = jwt.decode(token, signing_key(), algorithms=["RS256"]).claims
        except (JoseError, ValueError):
            return {"active": False}
        is_active = token not in self._revoked and claims["exp"] > time.time()
        return {"active": True, **claims} if is_active else {"active": False}

    def _token(self, form: Mapping[str, str]) -> tuple[int, Mapping[str, Any]]:
        answer = {"token_type": "Bearer", "expires_in": _LIFETIME}
        if form.get("grant_type") != "authorization_code":
            assertion = jws.extract_compact(form["assertion"].encode()).payload if "assertion" in form else b"{}"
            subject = json.loads(assertion).get("sub", "test-client")
            prefix, suffix = f"{NAMESPACE}:org:project:id:", ":aud"
            audience = [
                name[len(prefix) : -len(suffix)]
                for name in form.get("scope", "").split()
                if name.startswith(prefix) and name.endswith(suffix)
            ]
            token = self._sign({"sub": subject, "aud": audience or [self.url]}, _LIFETIME, "at+jwt")
            return 200, {"access_token": token, "scope": form.get("scope", ""), **answer}
        parameters, user = self._codes.pop(form.get("code", ""), ({}, {}))
        if (
            not parameters
            or parameters["redirect_uri"] != form.get("redirect_uri")
            or parameters["code_challenge"] != code_challenge(form.get("code_verifier", ""))
        ):
            return 400, {"error": "invalid_grant"}
        client_id = parameters["client_id"]
        access_token = self._sign({"sub": user["sub"], "aud": [client_id]}, _LIFETIME, "at+jwt")
        self._users[access_token] = user
        id_claims = {"sub": user["sub"], "aud": client_id, "nonce": parameters["nonce"], **self.id_token_claims}
        id_token = self._sign(id_claims, _LIFETIME, self.id_token_type)
        return 200, {"access_token": access_token, "id_token": id_token, **answer}

    def _sign(self, claims: Mapping[str, Any], lifetime: int, type_: str | None) -> str:
        now = int(time.time())
        header = {"alg": "RS256", "kid": KEY_ID, **({} if type_ is None else {"typ": type_})}
        members = {"iss": self.url, "iat": now, "exp": now + lifetime, **claims}
        known = {name: value for name, value in members.items() if value is not None}
        return jwt.encode(header, known, signing_key())
