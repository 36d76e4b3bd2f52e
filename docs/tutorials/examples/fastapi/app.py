"""A FastAPI application whose users sign in with identity."""

import os
import secrets
from html import escape
from typing import Annotated

from fastapi import Depends, FastAPI
from fastapi.responses import HTMLResponse
from identity_client import AsyncIdentityClient, User
from identity_client.fastapi import SignIn
from starlette.middleware.sessions import SessionMiddleware

client = AsyncIdentityClient(
    os.environ["ISSUER"], client_id=os.environ["CLIENT_ID"], client_secret=os.environ["CLIENT_SECRET"]
)
sign_in = SignIn(client)

app = FastAPI()
app.add_middleware(SessionMiddleware, secret_key=os.environ.get("SESSION_SECRET", secrets.token_hex(32)))
app.include_router(sign_in.router)


@app.get("/", response_class=HTMLResponse)
def home(user: Annotated[User | None, Depends(sign_in.optional_user)]):
    if user is None:
        return "<p>You are not signed in.</p><a href='/sign-in'>Sign in</a>"
    return f"<p>Hello {escape(user.name)}.</p><a href='/sign-out'>Sign out</a>"


@app.get("/notes", response_class=HTMLResponse)
def notes(user: Annotated[User, Depends(sign_in.user)]):
    return f"<p>Notes of {escape(user.name)}.</p>"
