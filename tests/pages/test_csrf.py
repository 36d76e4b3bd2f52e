"""CSRF protection: token, Sec-Fetch-Site and Origin."""

from typing import Any

import pytest

from identity.http import csrf

from .conftest import PageBrowser, SamplePage

OWN_ORIGIN = "https://id.example.com"


@pytest.mark.sampled(9)
@pytest.mark.parametrize(
    ("site", "origin", "status"),
    [
        *(("same-origin", origin, 303) for origin in ("", "null", OWN_ORIGIN, "https://evil.example")),
        ("none", "", 303),
        *(("same-site", origin, 403) for origin in ("", OWN_ORIGIN)),
        *(("cross-site", origin, 403) for origin in ("", "null", OWN_ORIGIN)),
        ("nonsense", OWN_ORIGIN, 403),
        *(("", origin, 303) for origin in ("", "null", OWN_ORIGIN, OWN_ORIGIN.upper().replace("HTTPS", "https"))),
        *(
            ("", origin, 403)
            for origin in ("https://evil.example", "http://id.example.com", f"{OWN_ORIGIN}:8443", f"{OWN_ORIGIN}.x")
        ),
    ],
)
def test_sec_fetch_site_and_origin_are_checked(browser: PageBrowser, site: str, origin: str, status: int) -> None:
    answer = browser.send("/things/new", {}, sec_fetch_site=site, origin=origin)
    assert answer.status_int == status
    assert len(SamplePage.submitted) == int(status == 303)
    if status == 403:
        assert "We did not accept this form" in answer.text
        assert browser.organizations() == 0


@pytest.mark.parametrize("token", ["", "x", "A" * 43, "é"])
def test_wrong_csrf_token_redisplays_form_with_input(browser: PageBrowser, token: str) -> None:
    answer = browser.send("/things/new", {"csrf_token": token, "name": "Kept"})
    assert answer.status_int == 422
    assert "This page was open for too long. Check what you entered and send it again." in answer.text
    assert SamplePage.submitted == []
    form = answer.forms["page-form"]
    assert form["name"].value == "Kept"
    assert browser.post("/things/new", dict(form.submit_fields())).status_int == 303


def test_csrf_token_is_bound_to_its_browser(browser: PageBrowser) -> None:
    stolen = browser.get("/things/new").forms["page-form"]["csrf_token"].value
    browser.app.reset()
    answer = browser.send("/things/new", {"csrf_token": stolen})
    assert answer.status_int == 422
    assert SamplePage.submitted == []


def test_csrf_cookie_without_session(browser: PageBrowser) -> None:
    answer = browser.get("/one")
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith("__Host-form=")
    assert {part.strip().lower() for part in cookie.split(";")[1:]} == {"path=/", "secure", "httponly", "samesite=lax"}
    assert "Set-Cookie" not in browser.get("/one").headers
    assert answer.forms["page-form"]["csrf_token"].value not in cookie


def test_csrf_cookie_has_no_prefix_on_plain_http(settings: dict[str, str]) -> None:
    plain = PageBrowser(settings | {"identity.issuer_url": "http://localhost:8080", "identity.development": "true"})
    answer = plain.app.get("/one", extra_environ={"HTTP_HOST": "localhost:8080"})
    assert answer.headers["Set-Cookie"].startswith("form=")
    assert "secure" not in answer.headers["Set-Cookie"].lower()
    plain.identity.close()


def test_csrf_is_checked_for_every_view(browser: PageBrowser) -> None:
    assert browser.get("/by-hand").status_int == 200
    assert browser.post("/by-hand", {"a": "b"}).status_int == 422
    token = browser.get("/one").forms["page-form"]["csrf_token"].value
    assert browser.post("/by-hand", {"csrf_token": token}).status_int == 200
    assert browser.post("/by-hand", {"csrf_token": token}, sec_fetch_site="cross-site").status_int == 403
    for method in ("put", "delete", "patch"):
        refused: Any = getattr(browser.app, method)("/by-hand", expect_errors=True)
        assert refused.status_int in (400, 422)


def test_protocol_endpoints_are_exempt(browser: PageBrowser) -> None:
    """Programs and other sites call these endpoints."""
    answer = browser.post("/oauth/v2/token", {"grant_type": "x"}, sec_fetch_site="cross-site")
    assert answer.status_int == 400
    assert answer.json["error"] == "unsupported_grant_type"


def test_csrf_token_is_bound_to_page_secret() -> None:
    class Request:
        environ: dict[str, str] = {}  # noqa: RUF012
        form_secret = "one"

    request, other = Request(), Request()
    other.form_secret = "other"
    assert csrf.csrf_token(request) == csrf.csrf_token(request) != csrf.csrf_token(other)
    assert csrf.is_valid_token(request, csrf.csrf_token(request))
    assert not csrf.is_valid_token(request, csrf.csrf_token(other))
