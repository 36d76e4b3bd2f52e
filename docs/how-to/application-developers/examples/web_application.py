"""A web application whose users sign in with the service.

python web_application.py ISSUER CLIENT_ID CLIENT_SECRET PORT, with the packages authlib and requests. Register the
redirect URI http://localhost:PORT/callback and the post-logout redirect URI http://localhost:PORT/.
"""

import secrets
import sys
from html import escape
from http.cookies import SimpleCookie
from socketserver import ThreadingMixIn
from urllib.parse import parse_qs, urlencode
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import requests
from authlib.integrations.requests_client import OAuth2Session
from joserfc import jwk, jwt

if len(sys.argv) != 5:
    sys.exit(__doc__)
issuer, client_id, client_secret, port = sys.argv[1:]
HOME = f"http://localhost:{port}/"
CALLBACK = f"{HOME}callback"

service = requests.get(f"{issuer}/.well-known/openid-configuration", timeout=10).json()
asked = {}  # state → nonce and PKCE verifier of pending requests
signed_in = {}  # our own session → tokens and claims


def client():
    return OAuth2Session(
        client_id,
        client_secret,
        scope="openid profile email",
        redirect_uri=CALLBACK,
        code_challenge_method="S256",
        timeout=10,
    )


def sign_in(environ, browser):
    """1. Redirect the browser to the authorization endpoint; remember the request in a cookie."""
    nonce, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
    url, state = client().create_authorization_url(
        service["authorization_endpoint"], nonce=nonce, code_verifier=verifier
    )
    asked[state] = nonce, verifier
    return redirect(url, f"state={state}")


def callback(environ, browser):
    """2. The browser is back: check that it is the same one, redeem the code, check the ID token."""
    answer = {name: values[0] for name, values in parse_qs(environ["QUERY_STRING"]).items()}
    state = answer.get("state")
    if state not in asked or state != browser.get("state") or answer.get("iss") != issuer:
        return page("400 Bad Request", "This is not an answer to what we asked.")
    nonce, verifier = asked.pop(state)
    if "error" in answer:
        return page("200 OK", f"You are not signed in: {answer['error']}.")
    tokens = client().fetch_token(service["token_endpoint"], code=answer["code"], code_verifier=verifier)
    keys = jwk.KeySet.import_key_set(requests.get(service["jwks_uri"], timeout=10).json())
    claims = jwt.decode(tokens["id_token"], keys, algorithms=["RS256"]).claims
    jwt.JWTClaimsRegistry(
        leeway=30,
        iss={"essential": True, "value": issuer},
        aud={"essential": True, "value": client_id},
        nonce={"essential": True, "value": nonce},
        exp={"essential": True},
    ).validate(claims)
    session = secrets.token_urlsafe(32)
    signed_in[session] = tokens, claims
    return redirect(HOME, f"session={session}")


def home(environ, browser):
    """3. Use the access token: here, call userinfo."""
    if browser.get("session") not in signed_in:
        return page("200 OK", "You are not signed in.", "/sign-in", "Sign in")
    tokens, _ = signed_in[browser["session"]]
    who = requests.get(
        service["userinfo_endpoint"], headers={"Authorization": f"Bearer {tokens['access_token']}"}, timeout=10
    )
    if who.status_code != requests.codes.ok:
        del signed_in[browser["session"]]
        return page("200 OK", "Your sign-in has ended.", "/sign-in", "Sign in")
    return page("200 OK", f"Hello {who.json()['name']}.", "/sign-out", "Sign out")


def sign_out(environ, browser):
    """4. End the application's session, then the one at the service, which redirects the browser back."""
    if browser.get("session") not in signed_in:
        return redirect(HOME, "session=; Max-Age=0")
    tokens, _ = signed_in.pop(browser["session"])
    query = urlencode({"id_token_hint": tokens["id_token"], "post_logout_redirect_uri": HOME})
    return redirect(f"{service['end_session_endpoint']}?{query}", "session=; Max-Age=0")


def page(status, text, href="/", words="Home"):
    body = f"<!doctype html><title>Example</title><p>{escape(text)}<p><a href='{href}'>{words}</a>"
    return status, [("Content-Type", "text/html; charset=utf-8")], body


def redirect(location, cookie):
    return "303 See Other", [("Location", location), ("Set-Cookie", f"{cookie}; Path=/; HttpOnly; SameSite=Lax")], ""


PAGES = {"/": home, "/sign-in": sign_in, "/callback": callback, "/sign-out": sign_out}


def application(environ, start_response):
    browser = {name: item.value for name, item in SimpleCookie(environ.get("HTTP_COOKIE", "")).items()}
    answer = PAGES.get(environ["PATH_INFO"], lambda *_: page("404 Not Found", "There is nothing here."))
    status, headers, body = answer(environ, browser)
    start_response(status, headers)
    return [body.encode()]


class Server(ThreadingMixIn, WSGIServer):
    """Handles several connections at once: browsers open more than they use."""

    daemon_threads = True


class Handler(WSGIRequestHandler):
    """Handles requests."""

    def log_message(self, *line):
        """Write no access log: it would contain authorization codes."""


with make_server("localhost", int(port), application, Server, Handler) as server:
    print(f"Open {HOME}", flush=True)
    server.serve_forever()
