"""The theme that the account menu chooses: which style sheets pages link, and where the choice leads."""

import pytest

from identity.testing.browser import Browser
from identity.testing.world import World
from tests.plugins.account.conftest import ACCOUNT_ORIGIN, token_of

QUERY = "(prefers-color-scheme: dark)"


def style_sheets(browser: Browser) -> str:
    """The text of all style sheets of the page."""
    links = [link["href"] for link in browser.page.html.select("link[rel=stylesheet]")]
    world = browser.world
    return "\n".join(world.client.get(world.identity.settings.login_url + href).text for href in links)


def choose(browser: Browser, theme: str, target: str = "/account/sessions?sort=1", token: str = "") -> None:
    form = {"csrf_token": token or token_of(browser), "theme": theme, "target": target}
    browser.post_form("/theme", form, initiator=ACCOUNT_ORIGIN)


def test_pages_follow_the_system_until_a_theme_is_chosen(browser: Browser) -> None:
    browser.open("/account/sessions")
    assert style_sheets(browser).count(QUERY) >= 2
    assert browser.page.html.select_one("meta[name=color-scheme]")["content"] == "light dark"
    [current] = browser.page.html.select(".theme [aria-current]")
    assert current.text == "System"


@pytest.mark.parametrize(("theme", "query"), [("dark", "@media all {"), ("light", "@media not all {")])
def test_chosen_theme_applies_to_all_pages_of_the_browser(browser: Browser, theme: str, query: str) -> None:
    browser.open("/account/sessions")
    choose(browser, theme)
    assert browser.path == "/account/sessions"
    for path in ("/account/sessions", "/password/reset"):
        browser.open(path)
        sheets = style_sheets(browser)
        assert QUERY not in sheets
        assert query in sheets
        assert browser.page.html.select_one("meta[name=color-scheme]")["content"] == theme
    browser.open("/account/sessions")
    choose(browser, "")
    assert QUERY in style_sheets(browser)


def test_theme_cookie_is_that_of_the_host_and_removed_for_the_system(browser: Browser) -> None:
    for theme, values in (("dark", ["dark"]), ("purple; Domain=evil.example", []), ("light", ["light"]), ("", [])):
        choose(browser, theme)
        assert [cookie.value for cookie in browser.cookies if cookie.name == "__Host-theme"] == values


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "evil.example", "javascript:alert(1)", "/\r\nSet-Cookie: a=b", "/ö", ""]
)
def test_choice_of_a_theme_leads_to_pages_of_this_host_only(browser: Browser, target: str) -> None:
    choose(browser, "dark", target)
    assert browser.url == "https://id.example.com/account/profile"


def test_choice_of_a_theme_needs_a_form_of_this_service(browser: Browser) -> None:
    choose(browser, "dark", token="made-up")
    browser.open("/account/sessions")
    assert QUERY in style_sheets(browser)


def test_theme_of_a_broken_cookie_is_that_of_the_system(world: World) -> None:
    client = Browser(world)
    for cookie in ("__Host-theme=purple", "__Host-theme=\xff\xfe", "\xff=1; __Host-theme"):
        answer = world.client.get(world.identity.settings.login_url + "/password/reset", {"Cookie": cookie})
        assert answer.status_int == 200, cookie
        assert 'content="light dark"' in answer.text
    assert client.open("/password/reset").status_int == 200
