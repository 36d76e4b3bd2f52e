"""Authorization requests that are pending at the login pages."""

from typing import Any

from identity.testing.browser import Browser
from identity.testing.relying_party import RelyingParty, SentAuthorizationRequest

FOREIGN = "This sign-in was started in another browser"


def begun(browser: Browser, party: RelyingParty, **parameters: Any) -> tuple[SentAuthorizationRequest, str]:
    """A pending request and its id."""
    authorization = party.open_request(browser, **parameters)
    assert browser.sign_in_step is not None, browser.page
    return authorization, browser.path.split("/")[2]


def attributes(header: str) -> tuple[str, str, frozenset[str]]:
    """Name, value and attributes of a Set-Cookie."""
    pair, *rest = header.split("; ")
    name, _, value = pair.partition("=")
    return name, value, frozenset(rest)
