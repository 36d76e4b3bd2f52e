"""The backend of a single-page application: it signs users in and keeps their tokens away from the browser."""

import asyncio
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from authlib.integrations.starlette_client import OAuth, OAuthError
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import RedirectResponse
from fastapi.staticfiles import StaticFiles
from starlette.middleware.sessions import SessionMiddleware


@dataclass
class SignedIn:
    """A signed-in browser: its tokens, and a lock, since each refresh token works only once."""

    token: dict
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


# By a random key, the only content of the cookie. In production, store sessions in a database.
sessions: dict[str, SignedIn] = {}


async def save_refreshed(name, token, refresh_token=None, access_token=None):
    """Replace the old tokens."""
    for signed_in in sessions.values():
        if signed_in.token.get("refresh_token") == refresh_token:
            signed_in.token = token


oauth = OAuth(update_token=save_refreshed)
oauth.register(
    "identity",
    client_id=os.environ["CLIENT_ID"],
    client_secret=os.environ["CLIENT_SECRET"],
    server_metadata_url=f"{os.environ['ISSUER']}/.well-known/openid-configuration",
    client_kwargs={"scope": "openid profile email offline_access", "code_challenge_method": "S256"},
)

app = FastAPI()
app.add_middleware(SessionMiddleware, secret_key=os.environ.get("SESSION_SECRET", secrets.token_hex(32)))


@app.get("/sign-in")
async def sign_in(request: Request):
    return await oauth.identity.authorize_redirect(request, request.url_for("callback"))


@app.get("/callback")
async def callback(request: Request):
    try:
        token = await oauth.identity.authorize_access_token(request)
    except OAuthError:
        return RedirectResponse("/")
    request.session["key"] = secrets.token_urlsafe(32)
    sessions[request.session["key"]] = SignedIn(token)
    return RedirectResponse("/")


def own_script(request: Request):
    """Other sites cannot set this header, so they cannot call the API with the browser's cookie."""
    if request.headers.get("X-Requested-With") != "single-page":
        raise HTTPException(403)


@app.get("/api/me", dependencies=[Depends(own_script)])
async def me(request: Request):
    signed_in = sessions.get(request.session.get("key"))
    if signed_in is None:
        raise HTTPException(401)
    try:
        async with signed_in.lock:
            # Refreshes the access token first if it is about to expire.
            claims = await oauth.identity.userinfo(token=signed_in.token)
    except OAuthError:
        sessions.pop(request.session.pop("key"), None)
        raise HTTPException(401) from None
    return {"name": claims["name"]}


@app.post("/api/sign-out", dependencies=[Depends(own_script)])
async def sign_out(request: Request):
    signed_in = sessions.pop(request.session.pop("key", None), None)
    home = str(request.base_url)
    if signed_in is None:
        return {"location": home}
    logout = await oauth.identity.create_logout_url(home, id_token_hint=signed_in.token["id_token"])
    return {"location": logout["url"]}


app.mount("/", StaticFiles(directory=Path(__file__).parent / "static", html=True))
