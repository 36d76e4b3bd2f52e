"""Sign-in and token checks for Starlette. ``identity_client.fastapi`` has the same as dependencies."""

import inspect
from collections.abc import Awaitable, Callable
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from identity_client.bearer import bearer_token
from identity_client.client import AsyncIdentityClient
from identity_client.errors import IdentityError
from identity_client.sign_in import SignedIn, User, local_path, store_user, stored_id_token, stored_user
from identity_client.tokens import AccessToken

#: Called after a sign-in, for example to store the user or the tokens.
OnSignIn = Callable[[Request, SignedIn], Awaitable[None] | None]


class Api:
    """Checks the bearer tokens of requests."""

    def __init__(self, client: AsyncIdentityClient) -> None:
        self._client = client

    async def token(self, request: Request, *roles: str) -> AccessToken:
        """The token of the request, whose user has one of the roles if any are named.

        Raises HTTPException: 401 without a valid token, 403 without a role, 503 if the service cannot be reached.
        """
        try:
            token = await self._client.check_access_token(bearer_token(request.headers.get("Authorization")))
            if roles:
                token.require_role(*roles)
        except IdentityError as error:
            raise http_exception(error) from error
        return token


class SignIn:
    """Pages ``/sign-in``, ``/callback`` and ``/sign-out``. The application needs SessionMiddleware.

    ``redirect_uri`` is the public address of the callback, where it differs from the one that the application sees.
    After signing out, users come to ``home``, a path whose address is registered as post-logout redirect URI.
    """

    def __init__(
        self,
        client: AsyncIdentityClient,
        *,
        home: str = "/",
        redirect_uri: str | None = None,
        on_sign_in: OnSignIn | None = None,
    ) -> None:
        self._client, self._home, self._redirect_uri, self._on_sign_in = client, home, redirect_uri, on_sign_in
        self.routes = [
            Route("/sign-in", self._begin, name="identity-sign-in"),
            Route("/callback", self._finish, name="identity-callback"),
            Route("/sign-out", self._sign_out, name="identity-sign-out"),
        ]

    def optional_user(self, request: Request) -> User | None:
        """Who is signed in; None if nobody is."""
        return stored_user(request.session, self._client.project_id)

    def user(self, request: Request) -> User:
        """Who is signed in. Raises HTTPException: a redirect to the sign-in for pages, 401 for other requests."""
        user = self.optional_user(request)
        if user is not None:
            return user
        if request.method != "GET" or "text/html" not in request.headers.get("Accept", ""):
            raise HTTPException(401)
        here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        address = f"{request.url_for('identity-sign-in').path}?{urlencode({'next': local_path(here)})}"
        raise HTTPException(303, headers={"Location": address})

    async def _begin(self, request: Request) -> Response:
        callback = self._redirect_uri or str(request.url_for("identity-callback"))
        try:
            address = await self._client.begin_sign_in(
                request.session, callback, request.query_params.get("next", self._home)
            )
        except IdentityError as error:
            raise http_exception(error) from error
        return RedirectResponse(address, 303)

    async def _finish(self, request: Request) -> Response:
        try:
            signed_in = await self._client.finish_sign_in(request.session, request.query_params)
        except IdentityError as error:
            raise http_exception(error) from error
        request.session.clear()
        store_user(request.session, signed_in)
        if self._on_sign_in is not None:
            result = self._on_sign_in(request, signed_in)
            if inspect.isawaitable(result):
                await result
        return RedirectResponse(signed_in.return_to, 303)

    async def _sign_out(self, request: Request) -> Response:
        id_token, user = stored_id_token(request.session), self.optional_user(request)
        request.session.clear()
        if user is None:
            return RedirectResponse(self._home, 303)
        home = str(request.base_url).rstrip("/") + self._home
        try:
            return RedirectResponse(await self._client.sign_out_url(home, id_token), 303)
        except IdentityError as error:
            raise http_exception(error) from error


def http_exception(error: IdentityError) -> HTTPException:
    return HTTPException(error.status, detail=error.detail, headers=dict(error.headers))
