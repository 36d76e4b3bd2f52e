"""Cookies of the login host: one for each session, each pending sign-in and each account that knows the browser.

Each is named by an id. It holds only a random secret (security 10.6), or, for an account that knows the browser, a
sealed text. Separate cookies keep two tabs that sign in at the same time from overwriting each other's.
"""

import re
from collections.abc import Mapping
from datetime import timedelta

from pyramid.request import Request

from identity.provider.protocol_request import BrowserState, Cookie, CookieKind
from identity.settings import Settings

#: Older cookies are removed, so that the header does not outgrow what servers read.
MAX_COOKIES_PER_KIND = 10

_VALUE = re.compile(r"[A-Za-z0-9_-]{1,200}")


def has_secure_cookies(settings: Settings) -> bool:
    """True unless the login host is plain http, which settings allow only for development."""
    return settings.login_url.startswith("https://")


def read_browser_state(settings: Settings, user_agent: bytes, cookies: str) -> BrowserState:
    """The browser's state from its headers. Other cookies are ignored."""
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
    """The same for a Pyramid request."""
    environ, settings = request.environ, request.registry.application.settings
    agent = environ.get("HTTP_USER_AGENT", "").encode("latin-1")
    return read_browser_state(settings, agent, environ.get("HTTP_COOKIE", ""))


def cookie_headers(settings: Settings, browser: BrowserState, cookies: tuple[Cookie, ...]) -> list[tuple[str, str]]:
    """The Set-Cookie headers. If a new cookie exceeds the limit, they remove the oldest."""
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
    """The same for a Pyramid request."""
    return cookie_headers(request.registry.application.settings, request.browser_state, cookies)


def _cookie_name_prefix(settings: Settings, kind: CookieKind) -> str:
    """The prefix of the cookies' names; over https ``__Host-`` keeps other hosts from setting them."""
    return f"__Host-{kind.value}-" if has_secure_cookies(settings) else f"{kind.value}-"


def _newest_values(values: Mapping[str, str]) -> dict[str, str]:
    # Ids begin with their time of creation.
    return {id_: values[id_] for id_ in sorted(values, reverse=True)[:MAX_COOKIES_PER_KIND]}


def _set_cookie_header(settings: Settings, cookie: Cookie) -> tuple[str, str]:
    name = _cookie_name_prefix(settings, cookie.kind) + cookie.id
    max_age = timedelta() if cookie.secret is None else cookie.max_age
    if cookie.secret is not None and cookie.kind is CookieKind.SIGN_IN:
        # An expired sign-in can be restarted while its cookie is there.
        max_age += settings.purge_after
    value = f"{name}={cookie.secret or ''}; Path=/; Max-Age={int(max_age.total_seconds())}; HttpOnly; SameSite=Lax"
    return "Set-Cookie", f"{value}; Secure" if has_secure_cookies(settings) else value
