"""Cookies of the login host hold only random secrets, are named by id, and are out of reach of scripts and other
sites."""

from types import SimpleNamespace
from typing import Any

import pytest

from identity.crypto.secrets import new_id, new_token
from identity.http.cookies import MAX_COOKIES_PER_KIND, read_request_browser_state, request_cookie_headers
from identity.provider.protocol_request import BrowserState, Cookie, CookieKind
from identity.settings import Settings

SECURE = "https://login.example.com"
PLAIN = "http://localhost:8080"


def make_request(
    login_url: str = SECURE, *, cookies: str = "", agent: str = "", browser: BrowserState | None = None
) -> Any:
    settings = SimpleNamespace(login_url=login_url, purge_after=Settings.purge_after)
    environ = {"HTTP_COOKIE": cookies, "HTTP_USER_AGENT": agent}
    registry = SimpleNamespace(application=SimpleNamespace(settings=settings))
    return SimpleNamespace(registry=registry, environ=environ, browser_state=browser or BrowserState())


def test_https_cookies_are_host_only() -> None:
    cookie = Cookie(CookieKind.SESSION, "id", "secret", Settings.session_max_age)
    ((name, value),) = request_cookie_headers(make_request(), (cookie,))
    assert name == "Set-Cookie"
    assert value == "__Host-session-id=secret; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax; Secure"


def test_plain_http_is_for_development() -> None:
    """Browsers refuse the prefix over http; settings allow http only on loopback in development."""
    cookie = Cookie(CookieKind.SIGN_IN, "id", "secret", Settings.sign_in_lifetime)
    ((_, value),) = request_cookie_headers(make_request(PLAIN), (cookie,))
    assert value == "sign-in-id=secret; Path=/; Max-Age=88200; HttpOnly; SameSite=Lax"


def test_cookie_without_secret_is_deleted() -> None:
    ((_, value),) = request_cookie_headers(make_request(), (Cookie(CookieKind.SESSION, "id"),))
    assert value.startswith("__Host-session-id=; ")
    assert "Max-Age=0" in value


def test_cookie_round_trip() -> None:
    session, sign_in = new_token(), new_token()
    header = f"other=1; __Host-session-a={session}; __Host-sign-in-b={sign_in}; __Host-known-c=AZaz09-_"
    browser = read_request_browser_state(make_request(cookies=header, agent="Test"))
    assert browser == BrowserState(
        sessions={"a": session}, sign_ins={"b": sign_in}, known_browsers={"c": "AZaz09-_"}, user_agent="Test"
    )


@pytest.mark.parametrize(
    "cookies",
    [
        "session-a=secret",
        "__Host-session-a=",
        "__Host-session-a=se cret",
        '__Host-session-a="quoted"',
        "__Host-session-a=ümlaut",
        "__Host-session-a=" + "x" * 201,
        "__host-session-a=secret",
        "=;;;==; ;",
        "__Host-session-a",
        "\xff\xfe",
    ],
)
def test_foreign_cookies_are_ignored(cookies: str) -> None:
    assert read_request_browser_state(make_request(cookies=cookies)) == BrowserState()


def test_unprefixed_cookie_is_ignored_on_https() -> None:
    """Another host of the domain could have set the cookie."""
    assert read_request_browser_state(make_request(cookies="session-a=secret")).sessions == {}
    assert read_request_browser_state(make_request(PLAIN, cookies="session-a=secret")).sessions == {"a": "secret"}


def test_newest_session_cookies_are_read() -> None:
    ids = [new_id() for _ in range(MAX_COOKIES_PER_KIND + 5)]
    header = "; ".join(f"__Host-session-{item}=s" for item in ids)
    assert set(read_request_browser_state(make_request(cookies=header)).sessions) == set(ids[5:])


@pytest.mark.parametrize(
    ("kind", "header"),
    [(CookieKind.SESSION, "sessions"), (CookieKind.SIGN_IN, "sign_ins"), (CookieKind.KNOWN_BROWSER, "known_browsers")],
)
def test_oldest_cookies_of_each_kind_are_deleted(kind: CookieKind, header: str) -> None:
    """A site that starts one sign-in after the other, or a user with many accounts, must not overflow the Cookie
    header."""
    ids = sorted(new_id() for _ in range(MAX_COOKIES_PER_KIND + 2))
    browser = BrowserState(**{header: dict.fromkeys(ids, "s")})
    new = Cookie(kind, new_id(), "secret", Settings.sign_in_lifetime)
    headers = [value for _, value in request_cookie_headers(make_request(browser=browser), (new,))]
    forgotten = [value for value in headers if "Max-Age=0" in value]
    assert len(headers) - len(forgotten) == 1
    assert [value.partition("=")[0] for value in forgotten] == [f"__Host-{kind.value}-{item}" for item in ids[:3]]


@pytest.mark.parametrize("agent", ["\xff\xfe", "ü".encode().decode("latin-1"), "\x00", "x" * 10000])
def test_malformed_user_agents_are_harmless(agent: str) -> None:
    assert read_request_browser_state(make_request(agent=agent)).user_agent.isprintable()
