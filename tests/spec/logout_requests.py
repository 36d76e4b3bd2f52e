"""Paths and page texts of RP-initiated logout."""

from typing import Any

from identity.testing.browser import Browser
from identity.testing.relying_party import RelyingParty

CONFIRMATION = "Sign out?"
SIGNED_OUT = "You are signed out"
UNTRUSTED = "We cannot send you back to this application"
UNKNOWN = "This application is unknown"
UNREADABLE = "This request cannot be read"

BYE = "https://app.example/bye"
ENDPOINT = "https://id.example.com/oauth/v2/endsession"


def is_signed_in(browser: Browser, party: RelyingParty) -> bool:
    """True if prompt=none succeeds in the browser."""
    authorization = party.new_request(prompt="none")
    return party.check_response(browser.open(authorization.url), authorization).get("error") != "login_required"


def check_sent_back(answer: Any, address: str = BYE) -> None:
    """Checks that the browser is redirected to the post-logout URI."""
    assert (answer.status_int, answer.headers.get("Location")) == (303, address), answer
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.body == b""
