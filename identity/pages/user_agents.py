"""Readable names of browsers, such as "Firefox on Windows"."""

from markupsafe import Markup

from identity.domain.messages import gettext_lazy
from identity.pages.translation import Translator

#: Each browser's token, in the order of checks: most browsers also send the tokens of others.
_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Vivaldi/", "Vivaldi"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Firefox/", "Firefox"),
    ("Chromium/", "Chromium"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_OPERATING_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Macintosh", "macOS"),
    ("Linux", "Linux"),
)
_UNKNOWN = gettext_lazy("Unknown device")


def describe_user_agent(user_agent: str, translator: Translator) -> Markup:
    """Browser and system, as far as they are known."""
    browser, system = _match_first(_BROWSERS, user_agent), _match_first(_OPERATING_SYSTEMS, user_agent)
    if browser and system:
        return translator.gettext("{browser} on {system}", browser=browser, system=system)
    return Markup.escape(browser or system) if browser or system else translator.gettext(_UNKNOWN)


def _match_first(known: tuple[tuple[str, str], ...], user_agent: str) -> str:
    return next((name for mark, name in known if mark in user_agent), "")
