"""A Flask application whose users sign in with identity."""

import os
import secrets

from flask import Flask, render_template_string
from identity_client import IdentityClient
from identity_client.flask import SignIn

app = Flask(__name__)
app.secret_key = os.environ.get("SESSION_SECRET", secrets.token_hex(32))

client = IdentityClient(
    os.environ["ISSUER"], client_id=os.environ["CLIENT_ID"], client_secret=os.environ["CLIENT_SECRET"]
)
sign_in = SignIn(client, app)

HOME = """
{% if user %}<p>Hello {{ user.name }}.</p><a href="/sign-out">Sign out</a>
{% else %}<p>You are not signed in.</p><a href="/sign-in">Sign in</a>{% endif %}
"""


@app.get("/")
def home():
    return render_template_string(HOME, user=sign_in.user)


@app.get("/notes")
@sign_in.require
def notes():
    return render_template_string("<p>Notes of {{ user.name }}.</p>", user=sign_in.user)
