"""A FastAPI application whose users sign in with identity."""

import os
import secrets
from html import escape

from authlib.integrations.starlette_client import OAuth, OAuthError
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.middleware.sessions import SessionMiddleware

app = FastAPI()
app.add_middleware(SessionMiddleware, secret_key=os.environ.get("SESSION_SECRET", secrets.token_hex(32)))

oauth = OAuth()
oauth.register(
    "identity",
    client_id=os.environ["CLIENT_ID"],
    client_secret=os.environ["CLIENT_SECRET"],
    server_metadata_url=f"{os.environ['ISSUER']}/.well-known/openid-configuration",
    client_kwargs={"scope": "openid profile email", "code_challenge_method": "S256"},
)


@app.get("/", response_class=HTMLResponse)
async def home(request: Request):
    user = request.session.get("user")
    if user is None:
        return "<p>You are not signed in.</p><a href='/sign-in'>Sign in</a>"
    return f"<p>Hello {escape(user['name'])}.</p><a href='/sign-out'>Sign out</a>"


@app.get("/sign-in")
async def sign_in(request: Request):
    return await oauth.identity.authorize_redirect(request, request.url_for("callback"))


@app.get("/callback")
async def callback(request: Request):
    try:
        token = await oauth.identity.authorize_access_token(request)
    except OAuthError as error:
        return HTMLResponse(f"<p>You are not signed in: {escape(error.error)}.</p>", status_code=400)
    user = await oauth.identity.userinfo(token=token)
    request.session["user"] = {"id": user["sub"], "name": user["name"]}
    request.session["id_token"] = token["id_token"]
    return RedirectResponse("/")


@app.get("/sign-out")
async def sign_out(request: Request):
    id_token = request.session.get("id_token")
    request.session.clear()
    if id_token is None:
        return RedirectResponse("/")
    return await oauth.identity.logout_redirect(request, request.url_for("home"), id_token_hint=id_token)
