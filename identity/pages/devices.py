"""What a browser says of itself, as a person would say it: "Firefox on Windows"."""

from markupsafe import Markup

from identity.domain.words import say
from identity.pages.translation import Words

#: What a browser of the family says and none before it in the list; most of them claim to be others too.
_FAMILIES = (
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
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Macintosh", "macOS"),
    ("Linux", "Linux"),
)
_UNKNOWN = say("Unknown device")


def device(user_agent: str, words: Words) -> Markup:
    """Browser and system, as far as they are known."""
    browser, system = _first(_FAMILIES, user_agent), _first(_SYSTEMS, user_agent)
    if browser and system:
        return words.t("{browser} on {system}", browser=browser, system=system)
    return Markup.escape(browser or system) if browser or system else words.t(_UNKNOWN)


def _first(known: tuple[tuple[str, str], ...], user_agent: str) -> str:
    return next((name for mark, name in known if mark in user_agent), "")
