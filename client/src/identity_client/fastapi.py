"""Sign-in and token checks for FastAPI, as dependencies.

``Depends(api.token)``, ``Depends(api.require("reader"))``, ``Depends(sign_in.user)``.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.requests import Request

from identity_client import starlette
from identity_client.client import AsyncIdentityClient
from identity_client.tokens import AccessToken

#: Only describes the token in the OpenAPI document; ``Api`` reads and checks it.
_Documented = Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))]


class Api:
    """Dependencies that check the bearer token of a request."""

    def __init__(self, client: AsyncIdentityClient) -> None:
        self._api = starlette.Api(client)

    async def token(self, request: Request, _: _Documented) -> AccessToken:
        """A valid token for this API. Raises HTTPException: 401, or 503 if the service cannot be reached."""
        return await self._api.token(request)

    def require(self, *roles: str) -> Callable[[Request, HTTPAuthorizationCredentials | None], Awaitable[AccessToken]]:
        """A dependency: a valid token whose user has one of the roles; 403 otherwise."""
        if not roles:
            raise ValueError("name a role")

        async def token(request: Request, _: _Documented) -> AccessToken:
            return await self._api.token(request, *roles)

        return token


class SignIn(starlette.SignIn):
    """``app.include_router(sign_in.router)`` adds the pages; ``Depends(sign_in.user)`` requires a signed-in user."""

    @property
    def router(self) -> APIRouter:
        router = APIRouter()
        for route in self.routes:
            router.add_route(route.path, route.endpoint, name=route.name, include_in_schema=False)
        return router
