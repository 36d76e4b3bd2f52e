"""Tokens of a service user, obtained with its key file (RFC 7523)."""

import asyncio
import json
import secrets
import threading
import time
from collections.abc import AsyncGenerator, Generator, Iterable
from os import PathLike
from pathlib import Path

import httpx
from joserfc import jwt
from joserfc.errors import InvalidKeyTypeError, JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey

from identity_client.client import AsyncIdentityClient, IdentityClient, token_response
from identity_client.errors import Unavailable
from identity_client.issuer import Exchange, Published
from identity_client.tokens import NAMESPACE, is_number

_GRANT_TYPE = "urn:ietf:params:oauth:grant-type:jwt-bearer"
#: How long an assertion is valid, in seconds.
_ASSERTION_LIFETIME = 300
#: A token is renewed so many seconds before it expires, or after nine tenths of its life.
_RENEWAL_MARGIN = 60
#: A failed renewal is repeated after so many seconds.
_RETRY_INTERVAL = 5


class ServiceUser(httpx.Auth):
    """Authenticates requests as a service user: ``httpx.Client(auth=ServiceUser(issuer, "key.json"))``.

    The token is renewed before it expires. The key file is read each time, so that a new key needs no restart. Use it
    only for requests to the APIs that the token is meant for: they all receive it.
    """

    def __init__(
        self,
        issuer: str,
        key_file: str | PathLike[str],
        *,
        projects: Iterable[str] = (),
        scopes: Iterable[str] = (),
        namespace: str = NAMESPACE,
        algorithm: str | None = None,
    ) -> None:
        """``projects`` are the ids of the APIs' projects: they become the audience, and the token carries the roles
        there. ``scopes`` are requested too. ``algorithm`` is the key's; by default the usual one for the type of key,
        so only keys for PS256 need it.
        """
        audience = [f"{namespace}:org:project:id:{project}:aud" for project in projects]
        roles = [f"{namespace}:org:projects:roles"] if audience else []
        self._scope = " ".join(dict.fromkeys(("openid", *audience, *roles, *scopes)))
        self._issuer, self._key_file, self._algorithm = issuer, Path(key_file), algorithm
        self._token, self._renewal_at, self._expires_at = "", 0.0, 0.0
        self._client, self._async_client = IdentityClient(issuer), AsyncIdentityClient(issuer)
        self._lock, self._async_lock = threading.Lock(), asyncio.Lock()

    def __repr__(self) -> str:
        return f"ServiceUser({self._issuer!r}, {str(self._key_file)!r})"

    def token(self) -> str:
        """An access token. Raises TokenRefused, Unavailable, ValueError if the key file is not one, OSError."""
        if self._must_renew():
            with self._lock:
                if self._must_renew():
                    try:
                        self._client.run(self._renew(self._client.published()))
                    except Unavailable:
                        if not self._postpone():
                            raise
        return self._token

    async def token_async(self) -> str:
        """The same for asyncio."""
        if self._must_renew():
            async with self._async_lock:
                if self._must_renew():
                    try:
                        await self._async_client.run(self._renew(await self._async_client.published()))
                    except Unavailable:
                        if not self._postpone():
                            raise
        return self._token

    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["Authorization"] = f"Bearer {self.token()}"
        self._forget_if_refused((yield request))

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        request.headers["Authorization"] = f"Bearer {await self.token_async()}"
        self._forget_if_refused((yield request))

    def _must_renew(self) -> bool:
        return time.monotonic() >= self._renewal_at

    def _postpone(self) -> bool:
        """Go on with the old token for a moment; False if it has expired."""
        now = time.monotonic()
        self._renewal_at = now + _RETRY_INTERVAL
        return now < self._expires_at

    def _forget_if_refused(self, response: httpx.Response) -> None:
        """The token may have been revoked: the next request gets a new one."""
        if response.status_code == 401:
            self._renewal_at = self._expires_at = 0.0

    def _renew(self, published: Published) -> Exchange[None]:
        requested_at = time.monotonic()
        form = {"grant_type": _GRANT_TYPE, "assertion": self._assertion(), "scope": self._scope}
        url = published.endpoint("token_endpoint")
        tokens = token_response((yield httpx.Request("POST", url, data=form, headers={"Accept": "application/json"})))
        expires_in = tokens.get("expires_in")
        lifetime = float(expires_in) if is_number(expires_in) else 0.0
        self._token = tokens["access_token"]
        self._expires_at = requested_at + lifetime
        self._renewal_at = requested_at + lifetime - min(_RENEWAL_MARGIN, lifetime / 10)

    def _assertion(self) -> str:
        """Raises ValueError, OSError."""
        try:
            members = json.loads(self._key_file.read_text())
            user_id, key_id, (algorithm, key) = members["userId"], members["keyId"], _private_key(members["key"])
        except (ValueError, TypeError, KeyError, JoseError):
            # Without the cause, which might quote the file.
            raise ValueError(f"{self._key_file} is not the key file of a service user") from None
        now = int(time.time())
        claims = {
            "iss": user_id,
            "sub": user_id,
            "aud": self._issuer,
            "iat": now,
            "exp": now + _ASSERTION_LIFETIME,
            "jti": secrets.token_urlsafe(16),
        }
        algorithm = self._algorithm or algorithm
        return jwt.encode({"alg": algorithm, "kid": key_id}, claims, key, algorithms=[algorithm])


def _private_key(pem: str) -> tuple[str, RSAKey | ECKey | OKPKey]:
    """The key with the usual algorithm of its type. Raises ValueError, JoseError."""
    for algorithm, kind in (("RS256", RSAKey), ("ES256", ECKey), ("Ed25519", OKPKey)):
        try:
            return algorithm, kind.import_key(pem)
        except InvalidKeyTypeError:
            continue
    raise ValueError("unknown type of key")
