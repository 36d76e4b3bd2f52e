"""An API that requires a recent second factor (RFC 9470): python step_up_api.py ISSUER CLIENT_ID SECRET PORT."""

import sys
import time
from collections.abc import Callable, Iterable
from wsgiref.simple_server import make_server

import requests

SECOND_FACTOR, MAX_AGE = "urn:service:iam:acr:2", 300
CLASSES = ("urn:service:iam:acr:1", SECOND_FACTOR, "urn:service:iam:acr:phr")


class Api:
    """Answers to tokens of people who proved two factors in the last five minutes."""

    def __init__(self, issuer: str, client_id: str, secret: str) -> None:
        discovery = requests.get(f"{issuer}/.well-known/openid-configuration", timeout=10).json()
        self.endpoint, self.credentials = discovery["introspection_endpoint"], (client_id, secret)

    def __call__(self, environ: dict[str, str], start_response: Callable[..., object]) -> Iterable[bytes]:
        scheme, _, token = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() != "bearer":
            return refuse(start_response, "")
        about = requests.post(self.endpoint, data={"token": token}, auth=self.credentials, timeout=10).json()
        if not about["active"]:
            return refuse(start_response, 'error="invalid_token"')
        # Tokens of programs have no acr. A class that is not in the list is weaker than all that are.
        acr = about.get("acr")
        is_strong = acr in CLASSES and CLASSES.index(acr) >= CLASSES.index(SECOND_FACTOR)
        if not is_strong or time.time() - about["auth_time"] > MAX_AGE:
            challenge = f'error="insufficient_user_authentication", acr_values="{SECOND_FACTOR}", max_age={MAX_AGE}'
            return refuse(start_response, challenge)
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [f"Hello {about['sub']}".encode()]


def refuse(start_response: Callable[..., object], challenge: str) -> Iterable[bytes]:
    start_response("401 Unauthorized", [("WWW-Authenticate", f"Bearer {challenge}".strip()), ("Content-Length", "0")])
    return []


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    make_server("127.0.0.1", int(sys.argv[4]), Api(*sys.argv[1:4])).serve_forever()
