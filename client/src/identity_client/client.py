"""``IdentityClient`` and ``AsyncIdentityClient``: the same operations, for threads and for asyncio."""

import asyncio
import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from types import TracebackType
from typing import Any
from urllib.parse import quote_plus

import httpx

from identity_client.errors import InvalidToken, SignInFailed, TokenRefused, Unavailable
from identity_client.issuer import Exchange, Issuer, Published, T, response_object, successful_object
from identity_client.sign_in import (
    PendingSignIn,
    Session,
    SignedIn,
    User,
    callback_code,
    check_same_subject,
    with_query,
)
from identity_client.tokens import (
    NAMESPACE,
    AccessToken,
    check_claims,
    is_jwt,
    key_id_of,
    verify_access_token,
    verify_id_token,
)
from identity_client.version import __version__

_HEADERS = {"Accept": "application/json", "User-Agent": f"identity-iam-client/{__version__}"}
_TIMEOUT = 10.0
_AUTHENTICATION_METHODS = ("client_secret_basic", "client_secret_post")
#: How many active tokens are remembered.
_MAX_REMEMBERED = 4096


class _Client:
    """What both clients share: settings, caches, and the operations as exchanges of requests and responses."""

    def __init__(
        self,
        issuer: str,
        *,
        client_id: str = "",
        client_secret: str = "",
        authentication_method: str = "client_secret_basic",
        project_id: str = "",
        scopes: Iterable[str] = ("openid", "profile", "email"),
        namespace: str = NAMESPACE,
        algorithms: Collection[str] = ("RS256",),
        introspection_max_age: float = 10,
    ) -> None:
        """``client_id`` and ``client_secret`` are those of the application, ``project_id`` is that of its project.

        ``authentication_method`` must be the one with which it is registered: ``client_secret_basic`` or
        ``client_secret_post``. Only tokens with the project in their audience are accepted. Active tokens are
        remembered for ``introspection_max_age`` seconds; 0 asks the service each time. Raises ValueError if the issuer
        is not https.
        """
        if authentication_method not in _AUTHENTICATION_METHODS:
            raise ValueError(f"authentication_method must be one of {', '.join(_AUTHENTICATION_METHODS)}")
        self.issuer = Issuer(issuer, algorithms)
        self.client_id, self.project_id, self.namespace = client_id, project_id, namespace
        self.scopes = tuple(dict.fromkeys(("openid", *scopes)))
        self._client_secret, self._authentication_method = client_secret, authentication_method
        self._introspection_max_age = introspection_max_age
        self._remembered: OrderedDict[bytes, tuple[float, AccessToken]] = OrderedDict()
        self._create_lock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.issuer.url!r})"

    def _create_lock(self) -> None:
        raise NotImplementedError

    @property
    def _introspects(self) -> bool:
        return bool(self._client_secret)

    def _form(self, url: str, members: Mapping[str, str]) -> httpx.Request:
        """A form-encoded request, authenticated as the application."""
        if not self._client_secret:
            return httpx.Request("POST", url, data={**members, "client_id": self.client_id}, headers=_HEADERS)
        if self._authentication_method == "client_secret_post":
            credentials = {"client_id": self.client_id, "client_secret": self._client_secret}
            return httpx.Request("POST", url, data={**members, **credentials}, headers=_HEADERS)
        # Form-encoded, as RFC 6749 §2.3.1 requires.
        auth = httpx.BasicAuth(quote_plus(self.client_id), quote_plus(self._client_secret))
        return next(auth.auth_flow(httpx.Request("POST", url, data=members, headers=_HEADERS)))

    def _verify(self, published: Published, token: str) -> AccessToken:
        claims = verify_access_token(token, self.issuer, published, self.project_id)
        return AccessToken(claims, self.project_id, self.namespace)

    def _recall(self, token: str) -> AccessToken | None:
        """The result of a recent introspection."""
        until, access_token = self._remembered.get(_digest(token), (0.0, None))
        return access_token if time.monotonic() < until else None

    def _introspect(self, published: Published, token: str) -> Exchange[AccessToken]:
        """Raises InvalidToken, Unavailable."""
        response = yield self._form(published.endpoint("introspection_endpoint"), {"token": token})
        claims = successful_object(response)
        if claims.get("active") is not True:
            raise InvalidToken("not active")
        check_claims(claims, self.issuer.url, self.project_id)
        access_token = AccessToken(claims, self.project_id, self.namespace)
        if self._introspection_max_age > 0:
            remaining = min(self._introspection_max_age, claims["exp"] - time.time())
            self._remembered[_digest(token)] = time.monotonic() + remaining, access_token
            while len(self._remembered) > _MAX_REMEMBERED:
                self._remembered.popitem(last=False)
        return access_token

    def _begin(
        self, published: Published, session: Session, redirect_uri: str, return_to: str, more: Mapping[str, str]
    ) -> str:
        pending = PendingSignIn.start(session, redirect_uri, return_to)
        parameters = {"client_id": self.client_id, "scope": " ".join(self.scopes), **more}
        return pending.authorization_url(published.endpoint("authorization_endpoint"), parameters)

    def _redeem(self, published: Published, pending: PendingSignIn, code: str) -> Exchange[Mapping[str, Any]]:
        """The response of the token endpoint. Raises SignInFailed, Unavailable."""
        grant = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": pending.redirect_uri,
            "code_verifier": pending.code_verifier,
        }
        try:
            return token_response((yield self._form(published.endpoint("token_endpoint"), grant)))
        except TokenRefused as refused:
            raise SignInFailed(str(refused), refused.error) from None

    def _user(self, published: Published, pending: PendingSignIn, tokens: Mapping[str, Any]) -> Exchange[SignedIn]:
        """Check the ID token and fetch userinfo. Raises SignInFailed, Unavailable."""
        id_token, access_token = tokens.get("id_token"), tokens["access_token"]
        if not isinstance(id_token, str):
            raise SignInFailed("the response has no ID token")
        try:
            claims = verify_id_token(
                id_token, self.issuer, published, self.client_id, nonce=pending.nonce, access_token=access_token
            )
            headers = {**_HEADERS, "Authorization": f"Bearer {access_token}"}
            userinfo = successful_object(
                (yield httpx.Request("GET", published.endpoint("userinfo_endpoint"), headers=headers))
            )
            check_same_subject(claims, userinfo)
        except InvalidToken as invalid:
            raise SignInFailed(f"the ID token is not valid: {invalid}") from None
        user = User({**userinfo, **claims}, self.project_id, self.namespace)
        return SignedIn(user, id_token, tokens, pending.return_to)

    def _sign_out_url(self, published: Published, redirect_uri: str, id_token: str | None) -> str:
        hint = {} if id_token is None else {"id_token_hint": id_token}
        parameters = {"client_id": self.client_id, "post_logout_redirect_uri": redirect_uri, **hint}
        return with_query(published.endpoint("end_session_endpoint"), parameters)


class IdentityClient(_Client):
    """For threads. Create one for each process and share it."""

    _http: httpx.Client | None = None

    def _create_lock(self) -> None:
        self._lock = threading.Lock()

    def published(self, key_id: str | None = None) -> Published:
        """Discovery document and keys. Raises Unavailable."""
        found = self.issuer.current(key_id)
        if found is None:
            with self._lock:
                found = self.run(self.issuer.refresh(key_id))
        return found

    def verify_access_token(self, token: str) -> AccessToken:
        """Check a JWT without asking the service, which does not notice that it was revoked.

        Raises InvalidToken, Unavailable.
        """
        return self._verify(self.published(key_id_of(token)), token)

    def introspect(self, token: str) -> AccessToken:
        """Ask the service. Raises InvalidToken, Unavailable."""
        return self._recall(token) or self.run(self._introspect(self.published(), token))

    def check_access_token(self, token: str) -> AccessToken:
        """Introspect the token if the client has a secret; otherwise verify it. Raises InvalidToken, Unavailable."""
        return self.introspect(token) if self._introspects else self.verify_access_token(token)

    def begin_sign_in(self, session: Session, redirect_uri: str, return_to: str = "/", **parameters: str) -> str:
        """The address to redirect the browser to. ``parameters`` are sent too, such as ``prompt`` or ``login_hint``."""
        return self._begin(self.published(), session, redirect_uri, return_to, parameters)

    def finish_sign_in(self, session: Session, parameters: Mapping[str, str]) -> SignedIn:
        """Complete the sign-in with the parameters of the callback. Raises SignInFailed, Unavailable.

        Give the browser a new session afterwards, so that nobody who knows the old one is signed in too.
        """
        pending = PendingSignIn.finish(session, parameters.get("state", ""))
        code = callback_code(parameters, self.issuer.url)
        tokens = self.run(self._redeem(self.published(), pending, code))
        return self.run(self._user(self.published(key_id_of_response(tokens)), pending, tokens))

    def sign_out_url(self, redirect_uri: str, id_token: str | None) -> str:
        """The address that ends the session at the service and returns to ``redirect_uri``."""
        return self._sign_out_url(self.published(), redirect_uri, id_token)

    def run(self, exchange: Exchange[T]) -> T:
        """Send the requests of an exchange."""
        try:
            request = next(exchange)
            while True:
                try:
                    response = self.send(request)
                except httpx.HTTPError as error:
                    request = exchange.throw(unreachable(request, error))
                else:
                    request = exchange.send(response)
        except StopIteration as finished:
            result: T = finished.value
            return result

    def send(self, request: httpx.Request) -> httpx.Response:
        if self._http is None:
            self._http = httpx.Client(timeout=_TIMEOUT)
        return self._http.send(request)

    def close(self) -> None:
        if self._http is not None:
            self._http.close()
            self._http = None

    def __enter__(self) -> "IdentityClient":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class AsyncIdentityClient(_Client):
    """For asyncio. Create one for each process and share it within one event loop."""

    _http: httpx.AsyncClient | None = None

    def _create_lock(self) -> None:
        self._lock = asyncio.Lock()

    async def published(self, key_id: str | None = None) -> Published:
        """Discovery document and keys. Raises Unavailable."""
        found = self.issuer.current(key_id)
        if found is None:
            async with self._lock:
                found = await self.run(self.issuer.refresh(key_id))
        return found

    async def verify_access_token(self, token: str) -> AccessToken:
        """As in IdentityClient."""
        return self._verify(await self.published(key_id_of(token)), token)

    async def introspect(self, token: str) -> AccessToken:
        """As in IdentityClient."""
        recalled = self._recall(token)
        if recalled is not None:
            return recalled
        return await self.run(self._introspect(await self.published(), token))

    async def check_access_token(self, token: str) -> AccessToken:
        """As in IdentityClient."""
        return await (self.introspect(token) if self._introspects else self.verify_access_token(token))

    async def begin_sign_in(self, session: Session, redirect_uri: str, return_to: str = "/", **parameters: str) -> str:
        """As in IdentityClient."""
        return self._begin(await self.published(), session, redirect_uri, return_to, parameters)

    async def finish_sign_in(self, session: Session, parameters: Mapping[str, str]) -> SignedIn:
        """As in IdentityClient."""
        pending = PendingSignIn.finish(session, parameters.get("state", ""))
        code = callback_code(parameters, self.issuer.url)
        tokens = await self.run(self._redeem(await self.published(), pending, code))
        return await self.run(self._user(await self.published(key_id_of_response(tokens)), pending, tokens))

    async def sign_out_url(self, redirect_uri: str, id_token: str | None) -> str:
        """As in IdentityClient."""
        return self._sign_out_url(await self.published(), redirect_uri, id_token)

    async def run(self, exchange: Exchange[T]) -> T:
        """As in IdentityClient."""
        try:
            request = next(exchange)
            while True:
                try:
                    response = await self.send(request)
                except httpx.HTTPError as error:
                    request = exchange.throw(unreachable(request, error))
                else:
                    request = exchange.send(response)
        except StopIteration as finished:
            result: T = finished.value
            return result

    async def send(self, request: httpx.Request) -> httpx.Response:
        if self._http is None:
            self._http = httpx.AsyncClient(timeout=_TIMEOUT)
        return await self._http.send(request)

    async def aclose(self) -> None:
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def __aenter__(self) -> "AsyncIdentityClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


def token_response(response: httpx.Response) -> dict[str, Any]:
    """The members of a successful token response. Raises TokenRefused, Unavailable."""
    members = response_object(response)
    if response.status_code in (400, 401):
        error = str(members.get("error", "invalid_request"))[:100]
        raise TokenRefused(f"the service issued no token: {error}", error)
    members = successful_object(response)
    if not isinstance(members.get("access_token"), str) or str(members.get("token_type")).lower() != "bearer":
        raise Unavailable("the token endpoint responded without a bearer token")
    return members


def key_id_of_response(tokens: Mapping[str, Any]) -> str | None:
    """The key that signed the ID token, if there is one; the check of the ID token follows."""
    try:
        return key_id_of(tokens["id_token"]) if is_jwt(str(tokens.get("id_token", ""))) else None
    except InvalidToken:
        return None


def unreachable(request: httpx.Request, error: httpx.HTTPError) -> Unavailable:
    return Unavailable(f"{request.url.host} cannot be reached: {type(error).__name__}")


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
