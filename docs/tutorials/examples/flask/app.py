"""A Flask application whose users sign in with identity."""

import os
import secrets

from authlib.integrations.flask_client import OAuth, OAuthError
from flask import Flask, redirect, render_template_string, session, url_for

app = Flask(__name__)
app.secret_key = os.environ.get("SESSION_SECRET", secrets.token_hex(32))

oauth = OAuth(app)
oauth.register(
    "identity",
    client_id=os.environ["CLIENT_ID"],
    client_secret=os.environ["CLIENT_SECRET"],
    server_metadata_url=f"{os.environ['ISSUER']}/.well-known/openid-configuration",
    client_kwargs={"scope": "openid profile email", "code_challenge_method": "S256"},
)

HOME = """
{% if user %}<p>Hello {{ user.name }}.</p><a href="/sign-out">Sign out</a>
{% else %}<p>You are not signed in.</p><a href="/sign-in">Sign in</a>{% endif %}
"""


@app.get("/")
def home():
    return render_template_string(HOME, user=session.get("user"))


@app.get("/sign-in")
def sign_in():
    return oauth.identity.authorize_redirect(url_for("callback", _external=True))


@app.get("/callback")
def callback():
    try:
        token = oauth.identity.authorize_access_token()
    except OAuthError as error:
        return render_template_string("<p>You are not signed in: {{ error }}.</p>", error=error.error), 400
    user = oauth.identity.userinfo(token=token)
    session["user"] = {"id": user["sub"], "name": user["name"]}
    session["id_token"] = token["id_token"]
    return redirect(url_for("home"))


@app.get("/sign-out")
def sign_out():
    id_token = session.get("id_token")
    session.clear()
    if id_token is None:
        return redirect(url_for("home"))
    return oauth.identity.logout_redirect(url_for("home", _external=True), id_token_hint=id_token)
