"""The test kit's browser stores and sends cookies like a real browser."""

from datetime import UTC, datetime, timedelta

import pytest

from identity.domain.users import HumanUser
from identity.testing.browser import Browser, sec_fetch_site, set_password
from identity.testing.cookies import CookieJar
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World

NOW = datetime(2030, 1, 1, tzinfo=UTC)
HTTPS = "https://id.example.com/login/x"
HTTP = "http://localhost:8080/login/x"


def jar_with(header: str, *, url: str = HTTPS) -> CookieJar:
    """A cookie jar that received this cookie."""
    jar = CookieJar()
    jar.store(url, header, NOW)
    return jar


@pytest.mark.parametrize(
    ("header", "url", "is_sent"),
    [
        ("a=1", HTTPS, True),
        ("a=1; Path=/", "https://id.example.com/", True),
        ("a=1; Path=/", "https://other.example.com/", False),
        ("a=1; Path=/", "https://sub.id.example.com/", False),
        ("a=1; Path=/; Domain=example.com", "https://other.example.com/", True),
        ("a=1; Path=/; Domain=example.com", "https://example.com/", True),
        ("a=1; Path=/login", "https://id.example.com/login", True),
        ("a=1; Path=/login", "https://id.example.com/loginx", False),
        ("a=1; Path=/login", "https://id.example.com/", False),
        ("a=1", "https://id.example.com/other", False),
        ("a=1; Path=/; Secure", "https://id.example.com/", True),
        ("a=1; Path=/; Secure", "http://id.example.com/", False),
    ],
)
def test_cookie_is_sent_to_matching_urls(header: str, url: str, is_sent: bool) -> None:
    """RFC 6265 §5.4."""
    assert (jar_with(header).header(url, NOW) == "a=1") is is_sent


@pytest.mark.parametrize(
    ("header", "url"),
    [
        ("no pair", HTTPS),
        ("=1", HTTPS),
        ("a=1; Domain=evil.example", HTTPS),
        ("a=1; Domain=other.example.com", HTTPS),
        ("a=1; Secure", HTTP),
        ("__Secure-a=1; Path=/", HTTPS),
        ("__Host-a=1; Path=/", HTTPS),
        ("__Host-a=1; Secure", HTTPS),
        ("__Host-a=1; Secure; Path=/login", HTTPS),
        ("__Host-a=1; Secure; Path=/; Domain=id.example.com", HTTPS),
        ("__Host-a=1; Secure; Path=/", HTTP),
    ],
)
def test_invalid_cookies_are_ignored(header: str, url: str) -> None:
    assert len(jar_with(header, url=url)) == 0


def test_host_cookie_is_kept() -> None:
    assert jar_with("__Host-a=1; Secure; Path=/").header(HTTPS, NOW) == "__Host-a=1"


def test_cookie_is_replaced_and_removed() -> None:
    jar = jar_with("a=1; Path=/")
    jar.store(HTTPS, "a=2; Path=/", NOW)
    assert jar.header(HTTPS, NOW) == "a=2"
    jar.store(HTTPS, "a=; Path=/; Max-Age=0", NOW)
    assert len(jar) == 0


def test_cookie_of_another_path_is_another_cookie() -> None:
    """The longer path comes first (RFC 6265 §5.4)."""
    jar = jar_with("a=1; Path=/")
    jar.store(HTTPS, "a=2; Path=/login", NOW)
    assert jar.header(HTTPS, NOW) == "a=2; a=1"


def test_cookies_end() -> None:
    jar = jar_with("a=1; Path=/; Max-Age=60")
    assert jar.header(HTTPS, NOW + timedelta(seconds=59)) == "a=1"
    assert jar.header(HTTPS, NOW + timedelta(seconds=60)) == ""
    expired = jar_with("a=1; Path=/; Expires=Tue, 01 Jan 2030 00:00:10 GMT")
    assert expired.header(HTTPS, NOW + timedelta(seconds=9)) == "a=1"
    assert expired.header(HTTPS, NOW + timedelta(seconds=10)) == ""


@pytest.mark.parametrize(
    ("same_site", "site", "method", "is_sent"),
    [
        ("Lax", "cross-site", "GET", True),
        ("Lax", "cross-site", "POST", False),
        ("Lax", "same-site", "POST", True),
        ("Lax", "none", "GET", True),
        ("Strict", "cross-site", "GET", False),
        ("Strict", "same-origin", "POST", True),
        ("None", "cross-site", "POST", True),
    ],
)
def test_same_site_withholds_cookies(same_site: str, site: str, method: str, is_sent: bool) -> None:
    jar = jar_with(f"a=1; Path=/; Secure; SameSite={same_site}")
    assert bool(jar.header(HTTPS, NOW, method=method, site=site)) is is_sent


def test_cookie_without_same_site_is_lax() -> None:
    assert jar_with("a=1; Path=/").header(HTTPS, NOW, method="POST", site="cross-site") == ""


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (None, "none"),
        ("https://id.example.com", "same-origin"),
        ("https://api.example.com", "same-site"),
        ("http://id.example.com", "cross-site"),
        ("https://app.example", "cross-site"),
    ],
)
def test_sec_fetch_site_of_requests(source: str | None, expected: str) -> None:
    assert sec_fetch_site(source, HTTPS) == expected


@pytest.fixture
def person(world: World) -> HumanUser:
    return world.make_human_user()


@pytest.fixture
def party(world: World) -> RelyingParty:
    return RelyingParty.register(world)


@pytest.mark.storages("memory")  # independent of the storage
def test_requests_send_origin_and_referer(world: World, person: HumanUser, party: RelyingParty) -> None:
    browser = Browser(world)
    authorization = party.new_request()
    browser.open(authorization.url, initiator=party.origin)
    first, page = (answer.request.headers for answer in browser.answers)
    assert first["Sec-Fetch-Site"] == page["Sec-Fetch-Site"] == "cross-site"
    assert "Origin" not in page
    browser.submit({"login_name": set_password(world, person)}, form="page-form")
    posted, following = (answer.request.headers for answer in browser.answers)
    assert (posted["Sec-Fetch-Site"], posted["Origin"]) == ("same-origin", world.issuer)
    assert posted["Referer"].startswith(f"{world.issuer}/login/")
    assert "Cookie" in posted
    assert following["Sec-Fetch-Site"] == "same-origin"


@pytest.mark.storages("memory")
def test_redirects_to_other_hosts_are_not_followed(world: World, person: HumanUser, party: RelyingParty) -> None:
    browser = Browser(world)
    browser.start_session(person)
    authorization = party.new_request()
    answer = browser.open(authorization.url)
    assert answer is browser.page
    assert browser.external_redirect is not None
    assert browser.external_redirect.startswith(party.redirect_uri)
    assert browser.sign_in_step is None


@pytest.mark.storages("memory")
def test_another_site_s_form_brings_no_cookies(world: World, person: HumanUser, party: RelyingParty) -> None:
    browser = Browser(world)
    browser.start_session(person)
    browser.post_form("/oauth/v2/authorize", dict(party.new_request().parameters), initiator=party.origin)
    posted, redirected = (answer.request.headers for answer in browser.answers)
    assert "Cookie" not in posted
    assert posted["Origin"] == party.origin
    assert "session-" in redirected["Cookie"]


@pytest.mark.storages("memory")
def test_tabs_share_only_cookies(world: World, person: HumanUser, party: RelyingParty) -> None:
    browser = Browser(world)
    tab = browser.tab()
    tab.start_session(person)
    assert browser.session_cookies == tab.session_cookies != frozenset()
    browser.open("/login")
    with pytest.raises(AssertionError, match="nothing was opened"):
        tab.page  # noqa: B018 - a property that refuses
    assert Browser(world).session_cookies == frozenset()
    assert Browser(world).address != browser.address


@pytest.mark.storages("memory")
def test_other_hosts_are_refused(world: World) -> None:
    with pytest.raises(AssertionError, match="none of our addresses"):
        Browser(world).open("https://evil.example/")
