"""The colour theme of pages: that of the system, or the one chosen in the account menu, which a cookie keeps.

A style sheet follows the system by a media query. For a chosen theme it is served again with the query decided, so that
colours are written once and pages need no script.
"""

from datetime import timedelta
from enum import StrEnum

from pyramid.request import Request

from identity.http.cookies import has_secure_cookies

DARK_QUERY = "(prefers-color-scheme: dark)"
_MAX_AGE = timedelta(days=400)


class Theme(StrEnum):
    SYSTEM = ""
    LIGHT = "light"
    DARK = "dark"


def apply_theme(style: str, theme: Theme) -> str:
    """The style sheet as it is for the theme, whatever the system's is."""
    if theme is Theme.SYSTEM:
        return style
    return style.replace(DARK_QUERY, "all" if theme is Theme.DARK else "not all")


def parse_theme(text: str) -> Theme:
    """That of the system for any text that names none."""
    return Theme(text) if text in {*Theme} else Theme.SYSTEM


def request_theme(request: Request) -> Theme:
    """That of the cookie. WebOb's dictionary of cookies refuses other services' cookies that are not UTF-8."""
    known = _cookie_name(request)
    for pair in request.environ.get("HTTP_COOKIE", "").split(";"):
        name, _, value = pair.strip().partition("=")
        if name == known:
            return parse_theme(value)
    return Theme.SYSTEM


def _cookie_name(request: Request) -> str:
    return "__Host-theme" if has_secure_cookies(request.registry.application.settings) else "theme"


def theme_cookie_header(request: Request, theme: Theme) -> tuple[str, str]:
    """The Set-Cookie header. The cookie holds no secret and identifies nobody."""
    age = timedelta() if theme is Theme.SYSTEM else _MAX_AGE
    value = f"{_cookie_name(request)}={theme.value}; Path=/; Max-Age={int(age.total_seconds())}; HttpOnly; SameSite=Lax"
    is_secure = has_secure_cookies(request.registry.application.settings)
    return "Set-Cookie", f"{value}; Secure" if is_secure else value
