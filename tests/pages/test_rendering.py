"""Rendering: strict HTML, escaping, resolvable ids, one autofocus, small pages."""

import re
from itertools import pairwise
from typing import Any
from xml.etree.ElementTree import Element

import html5lib
import pytest

from tests.pages.html_checks import check_page

from .conftest import PageBrowser

#: Status and heading by path.
PATHS = {
    "/things": (200, "Things"),
    "/things/new": (200, "New thing"),
    "/one": (200, "Enter the code"),
    "/nowhere": (404, "Page not found"),
}


def parsed(answer: Any) -> Element:
    """The parsed page. Raises ParseError for invalid HTML."""
    tree: Element = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(answer.text)
    return tree


def test_every_page_is_valid_html(browser: PageBrowser) -> None:
    for path, (status, title) in PATHS.items():
        # The first page shows every component.
        tree = check_page(browser.get(path), status, title, main_buttons=9 if path == "/things" else 1)
        known = {item.attrib.get("id") for item in tree.iter()}
        main = tree.find(".//main")
        levels = [int(item.tag[1]) for item in main.iter() if re.fullmatch("h[1-6]", str(item.tag))]
        assert levels[0] == 1
        assert all(later - earlier <= 1 for earlier, later in pairwise(levels)), "heading levels have no gaps"
        for item in tree.iter():
            href = item.attrib.get("href", "")
            assert not href.startswith("#") or href[1:] in known
            assert not [name for name in item.attrib if name.startswith("on")]
            assert item.tag not in ("script", "style") or not (item.text or "").strip(), "nothing is inline"


def test_values_are_escaped(browser: PageBrowser) -> None:
    html = browser.get("/things").text
    assert "<b>Ada" not in html
    assert "&lt;b&gt;Ada&lt;/b&gt; was changed." in html
    assert "Ada <Lovelace>" not in html
    assert 'value="Stored &lt;name&gt;"' in browser.get("/things/new").text


def test_title_contains_heading_parent_and_brand(browser: PageBrowser) -> None:
    titles = {path: parsed(browser.get(path)).findtext(".//title") for path in PATHS}
    assert titles["/things"] == "Things – Acme & Co – Identity"
    assert titles["/things/new"] == "New thing – Identity"
    assert titles["/nowhere"] == "Error: Page not found – Identity"
    assert len(set(titles.values())) == len(titles)


def test_navigation_is_rendered_once(browser: PageBrowser) -> None:
    """In a narrow window the same element is a popover."""
    page = browser.get("/things").text
    [navigation] = re.findall(r'<nav class="rail" id="navigation".*? popover>.*?</nav>', page, re.DOTALL)
    assert 'popovertarget="navigation"' in page
    assert navigation.count('aria-current="page"') == 1
    assert 'aria-current="true"' in browser.get("/things/new").text


def test_login_page_stays_small(browser: PageBrowser) -> None:
    assert len(browser.get("/one").body) <= 8 * 1024


def test_datetimes_are_formatted(browser: PageBrowser) -> None:
    html = browser.get("/things").text
    assert re.search(
        r'<time datetime="[\dT:-]+Z" title="[\d: -]+ UTC" data-local="minute">\w+ \d+, \d+ \d+:\d\d\s[AP]M UTC</time>',
        html,
    )
    assert "just now" in html


def test_operator_template_and_style_override(settings: dict[str, str], tmp_path: Any) -> None:
    (tmp_path / "brand.html").write_text(
        '{% set brand_name = "Acme" %}{% macro brand(href) %}<a class="brand" href="{{ href }}">Acme</a>{% endmacro %}'
    )
    (tmp_path / "acme.css").write_text(":root { --color-accent: #000000; }")
    browser = PageBrowser(
        settings | {"identity.pages_templates": str(tmp_path), "identity.pages_style": str(tmp_path / "acme.css")}
    )
    answer = browser.get("/one")
    tree = parsed(answer)
    assert tree.findtext(".//title") == "Enter the code – Acme"
    styles = [element.attrib["href"] for element in tree.iter("link") if element.attrib["rel"] == "stylesheet"]
    assert [re.sub("-[0-9a-f]{16}", "", style) for style in styles] == ["/static/identity.css", "/static/acme.css"]
    assert "#000000" in browser.get(styles[1]).text
    browser.identity.close()


@pytest.mark.thorough
def test_broken_operator_template_still_responds(
    settings: dict[str, str], tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "error.html").write_text("{{ nowhere }}")
    browser = PageBrowser(settings | {"identity.pages_templates": str(tmp_path)})
    answer = browser.get("/nothing")
    assert (answer.status_int, answer.content_type) == (404, "application/json")
    assert "cannot be drawn" in caplog.text
    browser.identity.close()
