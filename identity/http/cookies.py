"""Cookies of the login host: one for each session, each sign-in under way and each account that knows the browser.

Each is named by an id. It holds a random secret and nothing else (security 10.6), or for an account that knows the
browser a text that the service alone can make. One cookie apiece, so that two tabs that sign in at the same moment do
not overwrite each other's.
"""

import re
from collections.abc import Mapping
from datetime import timedelta

from pyramid.request import Request

from identity.provider.request import Browser, Cookie, CookieKind

#: A browser is asked to forget the oldest beyond these: its header must not outgrow what servers read.
MOST = 10

_VALUE = re.compile(r"[A-Za-z0-9_-]{1,200}")


def prefix(request: Request, kind: CookieKind | str) -> str:
    """What names of such cookies begin with; over https browsers keep other hosts from setting them (``__Host-``)."""
    word = kind.value if isinstance(kind, CookieKind) else kind
    return f"__Host-{word}-" if is_secure(request) else f"{word}-"


def is_secure(request: Request) -> bool:
    """True unless the login host is plain http, which settings allow for development alone."""
    return bool(request.registry.identity.settings.login_url.startswith("https://"))


def browser_of(request: Request) -> Browser:
    """What the browser shows of itself. Whatever is no cookie of ours is passed over."""
    environ = request.environ
    sent = environ.get("HTTP_USER_AGENT", "").encode("latin-1").decode("utf-8", "replace")
    agent = sent if sent.isprintable() else "".join(character for character in sent if character.isprintable())
    header = environ.get("HTTP_COOKIE", "")
    if not header:
        return Browser(user_agent=agent)
    found: dict[str, dict[str, str]] = {prefix(request, kind): {} for kind in CookieKind}
    for pair in header.split(";"):
        name, _, value = pair.strip().partition("=")
        for start, known in found.items():
            if name.startswith(start) and _VALUE.fullmatch(value):
                known[name.removeprefix(start)] = value
    sessions, sign_ins, known_at, remembered = map(_newest, found.values())
    return Browser(sessions=sessions, sign_ins=sign_ins, known=known_at, remembered=remembered, user_agent=agent)


def headers_for(request: Request, cookies: tuple[Cookie, ...]) -> list[tuple[str, str]]:
    """The Set-Cookie headers; where one more is set than fits the bounds, the browser is asked to forget the oldest."""
    headers = [_header(request, cookie) for cookie in cookies]
    browser = request.browser
    shown_by_kind = (browser.sessions, browser.sign_ins, browser.known, browser.remembered)
    for kind, shown in zip(CookieKind, shown_by_kind, strict=True):
        changed = {cookie.id: cookie.secret is not None for cookie in cookies if cookie.kind is kind}
        if any(changed.values()):
            kept = sorted(id_ for id_ in {*shown, *changed} if changed.get(id_, True))
            surplus = (id_ for id_ in kept[: max(0, len(kept) - MOST)] if id_ not in changed)
            headers.extend(_header(request, Cookie(kind, id_)) for id_ in surplus)
    return headers


def _newest(values: Mapping[str, str]) -> dict[str, str]:
    # Identifiers begin with the moment they were made at.
    return {id_: values[id_] for id_ in sorted(values, reverse=True)[:MOST]}


def _afterlife(request: Request, kind: CookieKind) -> timedelta:
    """How long a browser keeps what is over: a sign-in that took too long can be started again while it is known."""
    purge_after: timedelta = request.registry.identity.settings.purge_after
    return purge_after if kind is CookieKind.SIGN_IN else timedelta()


def _header(request: Request, cookie: Cookie) -> tuple[str, str]:
    name = prefix(request, cookie.kind) + cookie.id
    max_age = 0
    if cookie.secret is not None:
        max_age = int((cookie.max_age + _afterlife(request, cookie.kind)).total_seconds())
    value = f"{name}={cookie.secret or ''}; Path=/; Max-Age={max_age}; HttpOnly; SameSite=Lax"
    return "Set-Cookie", f"{value}; Secure" if is_secure(request) else value
