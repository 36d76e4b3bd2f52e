"""Forms keep input on redisplay, never send secrets back, and commit nothing when redisplayed."""

import json
import re
from typing import Any

import html5lib
import pytest

from identity.domain.errors import Conflict, Invalid
from identity.domain.messages import gettext_lazy
from identity.pages.forms import Form
from identity.pages.page import FormRedisplay
from identity.provider.errors import InvalidRequest

from .conftest import PageBrowser, SamplePage

TYPED = {"name": 'Ünï "<x>', "note": "a\r\n<b>\r\n c", "kind": "a", "agreed": "yes", "password": "hunter2-hunter2"}
SECRET = "hunter2-hunter2"


def form_values(answer: Any) -> dict[str, Any]:
    return dict(answer.forms["page-form"].submit_fields())


def tree(answer: Any) -> Any:
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(answer.text)


def check_kept(answer: Any) -> None:
    values = form_values(answer)
    assert {name: values[name] for name in ("name", "kind", "agreed")} == {
        name: TYPED[name] for name in ("name", "kind", "agreed")
    }
    assert values["note"].replace("\r\n", "\n") == "a\n<b>\n c"
    assert values["password"] == ""
    assert SECRET not in answer.text
    assert answer.forms["page-form"].get("role", index=0).checked is True
    assert answer.forms["page-form"].get("role", index=1).checked is False


def send(browser: PageBrowser, changed: dict[str, str] | None = None, **headers: str) -> Any:
    """Submit TYPED with the role reader checked."""
    form = browser.get("/things/new").forms["page-form"]
    fields = [(name, value) for name, value in form.submit_fields() if name not in {*TYPED, "role"}]
    typed = [*fields, *TYPED.items(), ("role", "reader")]
    sent = [(name, value) for name, value in typed if name not in (changed or {})] + list((changed or {}).items())
    return browser.post("/things/new", sent, **headers)


def test_accepted_form_redirects_with_303(browser: PageBrowser) -> None:
    answer = send(browser)
    assert (answer.status_int, answer.headers["Location"]) == (303, "https://id.example.com/things")
    [form] = SamplePage.submitted
    assert form.text("note") == "a\n<b>\n c"
    assert form.texts("role") == ("reader",)
    assert form.command_values("name", "kind", "nothing") == {"name": TYPED["name"], "kind": "a", "nothing": ""}
    assert browser.organizations() == 1


def test_field_errors_are_shown_at_fields_and_in_summary(browser: PageBrowser) -> None:
    SamplePage.raises.append(Invalid({"role": gettext_lazy("Choose a role."), "name": gettext_lazy("Use <less>.")}))
    answer = send(browser)
    assert answer.status_int == 422
    check_kept(answer)
    page = tree(answer)
    assert page.findtext(".//title").startswith("Error: ")
    summary = page.find(".//*[@id='errors']")
    assert summary.attrib["tabindex"] == "-1"
    assert "autofocus" in summary.attrib
    links = [(item.attrib["href"], item.text) for item in summary.iter("a")]
    assert links == [("#field-name", "Use <less>."), ("#field-role", "Choose a role.")]
    assert summary.findtext(".//h2") == "Check 2 fields"
    for name in ("name", "role"):
        assert page.find(f".//*[@id='error-{name}']") is not None
        control = page.find(f".//*[@id='field-{name}']")
        assert control.attrib["aria-invalid"] == "true"
        assert control.attrib["aria-describedby"].split()[0] == f"error-{name}"
    assert sum("autofocus" in item.attrib for item in page.iter()) == 1
    assert browser.organizations() == 0


def test_error_without_field_is_shown_in_summary(browser: PageBrowser) -> None:
    SamplePage.raises.append(Invalid({"request": gettext_lazy("Too much at once.")}))
    answer = send(browser)
    assert answer.status_int == 422
    assert "<li>Too much at once.</li>" in answer.text
    check_kept(answer)


def test_single_field_error_has_no_summary(browser: PageBrowser) -> None:
    answer = browser.send("/one", {"code": "12"})
    page = tree(answer)
    assert answer.status_int == 422
    assert page.find(".//*[@id='errors']") is None
    field = page.find(".//*[@id='field-code']")
    assert field.attrib["value"] == "12"
    assert "autofocus" in field.attrib


def test_conflict_shows_saved_values(browser: PageBrowser) -> None:
    SamplePage.raises.append(Conflict("stale"))
    answer = send(browser, {"version": "6"})
    assert answer.status_int == 409
    check_kept(answer)
    assert "This was changed in the meantime." in answer.text
    assert "Currently saved: Stored &lt;name&gt;" in answer.text
    assert form_values(answer)["version"] == "7"
    assert browser.organizations() == 0


def test_form_redisplay_shows_message_above_form(browser: PageBrowser) -> None:
    message = gettext_lazy("Wait {n} seconds.", n=8)
    SamplePage.raises.append(
        FormRedisplay(
            message,
            status=429,
            link=("/reset?a=1&b=2", gettext_lazy("Choose a new one.")),
            headers={"Retry-After": "8"},
        )
    )
    answer = send(browser)
    assert (answer.status_int, answer.headers["Retry-After"]) == (429, "8")
    assert 'Wait 8 seconds. <a href="/reset?a=1&amp;b=2">Choose a new one.</a>' in answer.text
    check_kept(answer)
    assert browser.organizations() == 0


@pytest.mark.parametrize("keep_changes", [True, False])
def test_form_redisplay_aborts_unless_changes_are_kept(browser: PageBrowser, keep_changes: bool) -> None:
    SamplePage.raises.append(FormRedisplay("Counted.", keep_changes=keep_changes))
    send(browser)
    assert browser.organizations() == int(keep_changes)


def test_submission_id_survives_redisplay(browser: PageBrowser) -> None:
    once = form_values(browser.get("/things/new"))["once"]
    assert once != form_values(browser.get("/things/new"))["once"]
    SamplePage.raises.append(Invalid({"name": "No."}))
    assert form_values(send(browser, {"once": once}))["once"] == once
    assert "once" not in form_values(browser.get("/one"))


# --- malformed requests -----------------------------------------------------------------------------------------------


def test_malformed_form_is_400(browser: PageBrowser) -> None:
    browser.get("/things/new")
    too_many = b"&".join([b"a%d=1" % n for n in range(101)])
    for body in (b"name=a&name=b", b"name=%ff", b"name=%zz", b"name=a%00b", b"name=\xff", too_many):
        answer = browser.post("/things/new", body, content_type="application/x-www-form-urlencoded")
        assert answer.status_int == 400
        assert "This request cannot be read" in answer.text
        assert SamplePage.submitted == []


def test_another_content_type_is_415(browser: PageBrowser) -> None:
    assert browser.post("/things/new", b"{}", content_type="application/json").status_int == 415


def test_large_form_is_413(browser: PageBrowser) -> None:
    answer = browser.post("/things/new", {"note": "x" * 70_000})
    assert answer.status_int == 413
    assert answer.content_type == "text/html"


def test_another_method_is_405(browser: PageBrowser) -> None:
    answer = browser.app.put("/things/new", headers={"Accept": "text/html"}, expect_errors=True)
    assert (answer.status_int, answer.headers["Allow"]) == (405, "GET, HEAD, POST")
    answer = browser.post("/things", {})
    assert (answer.status_int, answer.headers["Allow"]) == (405, "GET, HEAD")


def test_repeated_fields_are_read_only_where_declared() -> None:
    form = Form.parse(b"role=a&role=b&role=a&x=", frozenset({"role"}))
    assert form.texts("role") == ("a", "b")
    assert "x" not in form
    with pytest.raises(InvalidRequest):
        Form.parse(b"role=a&role=b")


# --- field check ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "fields"), [("bad", {"name": "Use at most 200 characters."}), ("good", {})])
def test_script_validation_saves_nothing(browser: PageBrowser, name: str, fields: Any) -> None:
    answer = browser.send("/things/new", {"name": name}, x_check="1")
    assert (answer.status_int, json.loads(answer.body)) == (200, {"fields": fields})
    assert SamplePage.submitted == []


def test_every_form_has_csrf_token(browser: PageBrowser) -> None:
    """Menus included."""
    for path in ("/things", "/things/new", "/one"):
        page = browser.get(path).text
        forms = re.findall(r'<form[^>]*method="post".*?</form>', page, re.DOTALL)
        assert forms
        assert all(re.search(r'name="csrf_token" value="[A-Za-z0-9_-]{43}"', form) for form in forms)
