"""The cookie by which an account recognizes a browser (identity.services.known_browsers)."""

from identity.provider.protocol_request import BrowserState, Cookie, CookieKind
from identity.services.container import Services
from identity.services.known_browsers import KNOWN_BROWSER_LIFETIME


def new_known_browser_cookies(user_id: str, browser: BrowserState, services: Services) -> list[Cookie]:
    """Cookies that mark the browser as known to the user, replacing those it has."""
    known = services.known_browsers
    id_, text = known.remember(user_id)
    former = [Cookie(CookieKind.KNOWN_BROWSER, item) for item in known.list_ids(user_id, browser.known_browsers)]
    return [Cookie(CookieKind.KNOWN_BROWSER, id_, text, KNOWN_BROWSER_LIFETIME), *former]
