"""Cookies of the login host: one for each session and one for each sign-in under way, named by its id.

Each holds a random secret and nothing else (security 10.6). One cookie apiece, so that two tabs that sign in at the
same moment do not overwrite each other's.
"""

from collections.abc import Mapping
from datetime import timedelta

from pyramid.request import Request

from identity.provider.request import Browser, Cookie, CookieKind

#: A browser is asked to forget the oldest beyond these: its header must not outgrow what servers read.
MOST_SESSIONS = 10
MOST_SIGN_INS = 10

_LONGEST_SECRET = 64


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
    agent = "".join(character for character in sent if character.isprintable())
    header = environ.get("HTTP_COOKIE", "")
    if not header:
        return Browser(user_agent=agent)
    sessions, sign_ins = prefix(request, CookieKind.SESSION), prefix(request, CookieKind.SIGN_IN)
    found: dict[str, dict[str, str]] = {sessions: {}, sign_ins: {}}
    for pair in header.split(";"):
        name, _, secret = pair.strip().partition("=")
        for start, known in found.items():
            if name.startswith(start) and secret.isalnum() and secret.isascii() and len(secret) <= _LONGEST_SECRET:
                known[name.removeprefix(start)] = secret
    return Browser(sessions=_newest(found[sessions], MOST_SESSIONS), sign_ins=found[sign_ins], user_agent=agent)


def headers_for(request: Request, cookies: tuple[Cookie, ...]) -> list[tuple[str, str]]:
    """The Set-Cookie headers; where one more is set than fits the bounds, the browser is asked to forget the oldest."""
    headers = [_header(request, cookie) for cookie in cookies]
    browser = request.browser
    for kind, shown, most in (
        (CookieKind.SESSION, browser.sessions, MOST_SESSIONS),
        (CookieKind.SIGN_IN, browser.sign_ins, MOST_SIGN_INS),
    ):
        changed = {cookie.id: cookie.secret is not None for cookie in cookies if cookie.kind is kind}
        if any(changed.values()):
            kept = sorted(id_ for id_ in {*shown, *changed} if changed.get(id_, True))
            surplus = (id_ for id_ in kept[: max(0, len(kept) - most)] if id_ not in changed)
            headers.extend(_header(request, Cookie(kind, id_)) for id_ in surplus)
    return headers


def _newest(secrets: Mapping[str, str], most: int) -> dict[str, str]:
    # Identifiers begin with the moment they were made at.
    return {id_: secrets[id_] for id_ in sorted(secrets, reverse=True)[:most]}


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
