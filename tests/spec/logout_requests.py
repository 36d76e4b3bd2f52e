"""What an application asks and sees when people sign out, and what they are told."""

from typing import Any

from identity.testing.browser import Browser
from identity.testing.relying_party import RelyingParty

CONFIRMATION = "Sign out?"
SIGNED_OUT = "You are signed out"
UNTRUSTED = "We cannot send you back to this application"
UNKNOWN = "We do not know this application"
UNREADABLE = "This request cannot be read"

BYE = "https://app.example/bye"
ENDPOINT = "https://id.example.com/oauth/v2/endsession"


def is_signed_in(browser: Browser, party: RelyingParty) -> bool:
    """Whether the browser's session answers for its person."""
    authorization = party.new_request(prompt="none")
    return party.check_response(browser.open(authorization.url), authorization).get("error") != "login_required"


def check_sent_back(answer: Any, address: str = BYE) -> None:
    """The browser goes where the application asked, and nowhere else."""
    assert (answer.status_int, answer.headers.get("Location")) == (303, address), answer
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.body == b""
