"""Profile Form Post OP: the page that posts the response. ``test_core_op.py`` has the modules."""

from typing import Any

import pytest

from identity.testing.response_checks import check_page
from tests.certification.plans import RESPONSE_TYPES

pytestmark = pytest.mark.storages("sqlite")  # the suite is independent of the storage

every = pytest.mark.parametrize("response_type", RESPONSE_TYPES)


@every
def test_response_is_posted(suite: Any, response_type: str) -> None:
    """One form for the redirect URI, submitted by a script file, with a button where scripts are off.

    OAuth 2.0 Form Post Response Mode §4: it contains codes and tokens, and is never cached.
    """
    assert suite.tokens(response_type, response_mode="form_post").claims["sub"] == suite.person.id
    page, headers = check_page(suite.browser.page), suite.browser.page.headers
    (form,) = page.find_all("form")
    assert (form["action"], form["method"]) == (suite.first.redirect_uri, "post")
    assert form.get("enctype") in (None, "application/x-www-form-urlencoded")
    assert [field["type"] for field in form.find_all("input")] == ["hidden"] * len(form.find_all("input"))
    assert form.find("button", attrs={"type": "submit"})
    assert suite.browser.external_redirect is None
    assert (headers["Cache-Control"], headers["Referrer-Policy"]) == ("no-store", "no-referrer")
    (sender,) = (item["src"] for item in page.find_all("script") if "form_post" in item["src"])
    script = suite.browser.tab().open(sender)
    assert script.status_int == 200
    assert "submit" in script.text


@every
def test_errors_are_posted_too(suite: Any, response_type: str) -> None:
    for parameters, error in (
        ({"prompt": "none"}, "login_required"),
        ({"scope": "profile"}, "invalid_scope"),
        ({"prompt": "none login"}, "invalid_request"),
        ({"request": "x.y."}, "request_not_supported"),
    ):
        suite.first.expect_error_at_once(
            suite.browser, error, response_type, **{"response_mode": "form_post"} | parameters
        )


def test_page_reload_issues_new_code(suite: Any) -> None:
    """Reloading the page repeats the request; no code is shown twice."""
    request = suite.first.new_request(response_mode="form_post")
    suite.authorize(request)
    codes = {suite.first.extract_code(suite.browser.open(request.url), request) for _ in range(2)}
    assert len(codes) == 2
