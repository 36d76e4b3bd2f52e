"""Error pages show a request id and no cause; APIs respond with JSON."""

import re
from typing import Any

import pytest

from identity.storage.errors import StorageUnavailable

from .conftest import PageBrowser


def test_error_pages_are_html(browser: PageBrowser) -> None:
    for path, status, title in (
        ("/nowhere", 404, "Page not found"),
        ("/failing/denied", 403, "You do not have access to this page"),
        ("/failing/unavailable", 503, "We are busy just now"),
        ("/failing/unexpected", 500, "Something went wrong on our side"),
        ("/failing/conflict", 409, "This request cannot be read"),
    ):
        answer = browser.get(path)
        assert (answer.status_int, answer.content_type) == (status, "text/html")
        assert f"<h1>{title}</h1>" in answer.text
        assert re.search(r"<code>[0-9a-f-]{36}</code>", answer.text)
        assert "db.internal" not in answer.text
        assert "Traceback" not in answer.text


@pytest.mark.parametrize("path", ["/nowhere", "/failing/denied"])
def test_error_page_links_start_page_and_sign_out(browser: PageBrowser, path: str) -> None:
    """Users can sign out and continue with an account that has the permission."""
    assert 'href="/"' in browser.get(path).text
    assert 'href="/sign-out"' not in browser.get(path).text
    assert 'href="/sign-out"' in browser.get(path, Cookie="__Host-session-x=abc").text


def test_request_error_pages_have_links(browser: PageBrowser) -> None:
    answers = [browser.get("/failing/conflict"), browser.post("/things", {"a": "b"})]
    answers += [browser.post("/by-hand", {"a": "b"}, sec_fetch_site=site) for site in ("same-origin", "cross-site")]
    for answer in answers:
        assert 400 <= answer.status_int < 500
        assert answer.html.find("main").find("a", href="/") is not None


def test_invalid_query_page_links_path_without_query(browser: PageBrowser) -> None:
    answer = browser.get("/failing/conflict?sort=nothing")
    assert answer.html.find("main").find("a", href="/failing/conflict") is not None


@pytest.mark.parametrize(
    ("language", "message"), [("en", "This requires the permission user.read."), ("de", "Dafür ist")]
)
def test_permission_error_names_permission(browser: PageBrowser, language: str, message: str) -> None:
    assert message in browser.get("/failing/denied", accept_language=language).text


def test_domain_error_is_translated(browser: PageBrowser) -> None:
    assert (
        "Diese Domain muss zuerst nachgewiesen werden." in browser.get("/failing/conflict", accept_language="de").text
    )


def test_503_has_retry_after(browser: PageBrowser) -> None:
    answer = browser.get("/failing/unavailable")
    assert answer.headers["Retry-After"] == "5"
    assert "Try again in 5 seconds." in answer.text


def test_500_and_503_are_rendered_without_database(browser: PageBrowser, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*args: object) -> None:
        raise StorageUnavailable("db.internal")

    monkeypatch.setattr(browser.identity.backend, "read_session", away)
    monkeypatch.setattr(browser.identity.backend, "join_transaction", away)
    for error_name, status in (("unavailable", 503), ("unexpected", 500)):
        answer = browser.get(f"/failing/{error_name}", Cookie="__Host-session-x=abc")
        assert (answer.status_int, answer.content_type) == (status, "text/html")


@pytest.mark.parametrize("accept", ["", "*/*", "application/json"])
def test_api_errors_are_json(browser: PageBrowser, accept: str) -> None:
    answer = browser.get("/nowhere", accept=accept)
    assert (answer.status_int, answer.json["error"]) == (404, "not_found")


@pytest.mark.parametrize("accept", ["", "*/*", "text/html"])
def test_api_routes_answer_json_to_browsers(browser: PageBrowser, accept: str) -> None:
    answer = browser.get("/management/v1/me", accept=accept)
    assert (answer.status_int, answer.json["error"]) == (401, "unauthenticated")
    answer = browser.post("/oauth/v2/token", {}, accept=accept)
    assert answer.json["error"] == "invalid_request"


@pytest.mark.parametrize("accept", ["", "*/*", "text/html"])
def test_page_routes_answer_html_to_any_client(browser: PageBrowser, accept: str) -> None:
    assert browser.get("/failing/denied", accept=accept).content_type == "text/html"


def test_unknown_host_page_names_settings(browser: PageBrowser) -> None:
    answer: Any = browser.app.get(
        "/things", headers={"Accept": "text/html"}, extra_environ={"HTTP_HOST": "127.0.0.1:8080"}, expect_errors=True
    )
    assert (answer.status_int, answer.content_type) == (421, "text/html")
    assert (
        '<a href="https://id.example.com"><code>https://id.example.com</code></a> (identity.login_url)' in answer.text
    )
    assert "127.0.0.1" not in answer.text


def test_anonymous_request_redirects_to_sign_in(browser: PageBrowser) -> None:
    answer = browser.get("/closed?a=1&b=2")
    assert (answer.status_int, answer.headers["Location"]) == (
        303,
        "https://id.example.com/login?target=%2Fclosed%3Fa%3D1%26b%3D2",
    )


@pytest.mark.parametrize("raw", ["/\xff", "/a\0b"])
def test_undecodable_path_is_404(browser: PageBrowser, raw: str) -> None:
    answer = browser.app.get(
        "/x", headers={"Accept": "text/html"}, extra_environ={"PATH_INFO": raw}, expect_errors=True
    )
    assert (answer.status_int, answer.content_type) == (404, "text/html")


def test_invalid_query_is_harmless(browser: PageBrowser) -> None:
    for path in ("/nowhere?%ff=%ff", "/one?a=%ff"):
        assert browser.get(path).status_int in (200, 400, 404)


# --- headers ----------------------------------------------------------------------------------------------------------

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none';"
    " frame-ancestors 'none'"
)


@pytest.mark.parametrize("path", ["/things", "/things/new", "/one", "/nowhere", "/failing/unexpected"])
def test_page_headers(browser: PageBrowser, path: str) -> None:
    headers = browser.get(path).headers
    assert headers["Content-Security-Policy"] == f"{POLICY}; form-action 'self'"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Strict-Transport-Security"] == "max-age=31536000"


def test_login_pages_have_no_form_action(browser: PageBrowser) -> None:
    """Browsers apply form-action to all redirects after a POST, also to those of the application."""
    headers = browser.get("/login/0192f3a7/nothing").headers
    assert headers["Content-Security-Policy"] == POLICY
