"""The cookie by which an account knows a browser again (identity.services.known_browsers)."""

from identity.provider.request import Browser, Cookie, CookieKind
from identity.services.bundle import Services
from identity.services.known_browsers import KNOWN_FOR


def known_browser(user_id: str, browser: Browser, services: Services) -> list[Cookie]:
    """Cookies that make the browser one that the user signed in at, in place of what it has from before."""
    known = services.known_browsers
    id_, text = known.remember(user_id)
    former = [Cookie(CookieKind.KNOWN_BROWSER, one) for one in known.of(user_id, browser.known)]
    return [Cookie(CookieKind.KNOWN_BROWSER, id_, text, KNOWN_FOR), *former]
