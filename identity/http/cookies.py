"""Cookies of the login host: one for each session, each sign-in under way and each account that knows the browser.

Each is named by an id. It holds a random secret and nothing else (security 10.6), or for an account that knows the
browser a text that the service alone can make. One cookie apiece, so that two tabs that sign in at the same moment do
not overwrite each other's.
"""

import re
from collections.abc import Mapping
from datetime import timedelta

from pyramid.request import Request

from identity.provider.protocol_request import BrowserState, Cookie, CookieKind
from identity.settings import Settings

#: A browser is asked to forget the oldest beyond these: its header must not outgrow what servers read.
MAX_COOKIES_PER_KIND = 10

_VALUE = re.compile(r"[A-Za-z0-9_-]{1,200}")


def has_secure_cookies(settings: Settings) -> bool:
    """True unless the login host is plain http, which settings allow for development alone."""
    return settings.login_url.startswith("https://")


def read_browser_state(settings: Settings, user_agent: bytes, cookies: str) -> BrowserState:
    """What the browser shows of itself, by its headers. Whatever is no cookie of ours is passed over."""
    sent = user_agent.decode("utf-8", "replace")
    agent = sent if sent.isprintable() else "".join(character for character in sent if character.isprintable())
    if not cookies:
        return BrowserState(user_agent=agent)
    found: dict[str, dict[str, str]] = {_cookie_name_prefix(settings, kind): {} for kind in CookieKind}
    for pair in cookies.split(";"):
        name, _, value = pair.strip().partition("=")
        for start, known in found.items():
            if name.startswith(start) and _VALUE.fullmatch(value):
                known[name.removeprefix(start)] = value
    sessions, sign_ins, known_at, remembered = map(_newest_values, found.values())
    return BrowserState(
        sessions=sessions, sign_ins=sign_ins, known_browsers=known_at, remembered_browsers=remembered, user_agent=agent
    )


def read_request_browser_state(request: Request) -> BrowserState:
    """The same of a request to Pyramid."""
    environ, settings = request.environ, request.registry.application.settings
    agent = environ.get("HTTP_USER_AGENT", "").encode("latin-1")
    return read_browser_state(settings, agent, environ.get("HTTP_COOKIE", ""))


def cookie_headers(settings: Settings, browser: BrowserState, cookies: tuple[Cookie, ...]) -> list[tuple[str, str]]:
    """The Set-Cookie headers; where one more is set than fits the bounds, the browser is asked to forget the oldest."""
    headers = [_set_cookie_header(settings, cookie) for cookie in cookies]
    shown_by_kind = (browser.sessions, browser.sign_ins, browser.known_browsers, browser.remembered_browsers)
    for kind, presented in zip(CookieKind, shown_by_kind, strict=True):
        changed = {cookie.id: cookie.secret is not None for cookie in cookies if cookie.kind is kind}
        if any(changed.values()):
            remaining = sorted(id_ for id_ in {*presented, *changed} if changed.get(id_, True))
            surplus = (id_ for id_ in remaining[: max(0, len(remaining) - MAX_COOKIES_PER_KIND)] if id_ not in changed)
            headers.extend(_set_cookie_header(settings, Cookie(kind, id_)) for id_ in surplus)
    return headers


def request_cookie_headers(request: Request, cookies: tuple[Cookie, ...]) -> list[tuple[str, str]]:
    """The same for the browser of a request to Pyramid."""
    return cookie_headers(request.registry.application.settings, request.browser_state, cookies)


def _cookie_name_prefix(settings: Settings, kind: CookieKind) -> str:
    """What names of such cookies begin with; over https browsers keep other hosts from setting them (``__Host-``)."""
    return f"__Host-{kind.value}-" if has_secure_cookies(settings) else f"{kind.value}-"


def _newest_values(values: Mapping[str, str]) -> dict[str, str]:
    # Identifiers begin with the moment they were made at.
    return {id_: values[id_] for id_ in sorted(values, reverse=True)[:MAX_COOKIES_PER_KIND]}


def _cookie_max_age(settings: Settings, kind: CookieKind) -> timedelta:
    """How long a browser keeps what is over: a sign-in that took too long can be started again while it is known."""
    return settings.purge_after if kind is CookieKind.SIGN_IN else timedelta()


def _set_cookie_header(settings: Settings, cookie: Cookie) -> tuple[str, str]:
    name = _cookie_name_prefix(settings, cookie.kind) + cookie.id
    max_age = 0
    if cookie.secret is not None:
        max_age = int((cookie.max_age + _cookie_max_age(settings, cookie.kind)).total_seconds())
    value = f"{name}={cookie.secret or ''}; Path=/; Max-Age={max_age}; HttpOnly; SameSite=Lax"
    return "Set-Cookie", f"{value}; Secure" if has_secure_cookies(settings) else value
