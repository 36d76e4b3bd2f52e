"""Protection of signed-in users from other sites (security 11)."""

from urllib.parse import urlencode

import pytest

from tests.browser.chromium import ChromiumProfile, MakeProfile
from tests.browser.example_company import ExampleCompany
from tests.browser.tab import Tab

pytestmark = pytest.mark.thorough


def test_cross_origin_form_is_refused(site: ExampleCompany, profile: ChromiumProfile, tab: Tab) -> None:
    """Also from the same site, which sends cookies, and with a valid token, which may have leaked."""
    anna = site.make_user()
    site.start_session(profile, anna)
    tab.open(f"{site.url}/account/profile")
    fields = {
        str(element.get_attribute("name")): str(element.get_property("value"))
        for element in tab.all("#page-form input, #page-form select, #page-form textarea")
        if element.get_attribute("name")
    }
    assert fields["csrf_token"]
    target, changed = f"{site.url}/account/profile", {**fields, "given_name": "Mallory"}
    tab.open(site.application.form_to(target, changed, origin=site.application.other_origin))
    tab.press("Win a prize")
    assert (tab.status, tab.heading) == (403, "We did not accept this form")
    # Cross-site requests carry no cookies, so there is no session.
    tab.open(site.application.form_to(target, changed))
    tab.press("Win a prize")
    assert not tab.all(".notice--success")
    with site.world.read_only_services() as services:
        assert services.users.get(anna.user.id).profile.given_name == "Anna"


@pytest.mark.parametrize("path", ["/sign-out", "/account/sessions", "/account/switch", "/password/reset"])
@pytest.mark.parametrize("origin_name", ["origin", "other_origin"])
def test_cross_site_forms_are_refused(
    site: ExampleCompany, profile: ChromiumProfile, tab: Tab, path: str, origin_name: str
) -> None:
    anna = site.make_user()
    site.start_session(profile, anna)
    sessions = len(site.world.audit_events(event="session.ended"))
    origin = getattr(site.application, origin_name)
    fields = {"login_name": anna.login_name, "others": "yes", "session": "new"}
    tab.open(site.application.form_to(f"{site.url}{path}", fields, origin=origin))
    tab.press("Win a prize")
    if origin_name == "other_origin":
        assert (tab.status, tab.heading) == (403, "We did not accept this form")
    assert len(site.world.audit_events(event="session.ended")) == sessions
    tab.open(f"{site.url}/account")
    assert tab.heading == "Profile"


def test_login_csrf_is_refused(site: ExampleCompany, tab: Tab, make_profile: MakeProfile) -> None:
    """Login CSRF: a victim's browser submits the attacker's sign-in form, including its token."""
    mallory = site.make_user("Mallory", "Moor")
    attacker_tab = make_profile().tab()
    site.ask(attacker_tab)
    attacker_tab.send(login_name=mallory.login_name)
    token = str(attacker_tab.find("#page-form [name=csrf_token]").get_property("value"))
    fields = {"csrf_token": token, "password": mallory.password}
    tab.open(site.application.form_to(attacker_tab.url, fields))
    tab.press("Win a prize")
    assert tab.status in (400, 403)
    tab.open(f"{site.url}/account")
    assert tab.heading == "Sign in"


@pytest.mark.parametrize("path", ["/account/profile", "/login", "/sign-out", "/password/reset", "/nothing"])
def test_pages_cannot_be_framed(site: ExampleCompany, profile: ChromiumProfile, tab: Tab, path: str) -> None:
    site.start_session(profile, site.make_user())
    tab.open(site.application.frame_of(f"{site.url}{path}"))
    tab.wait(lambda: any("frame" in message for message in profile.console))
    message = "\n".join(profile.console)
    assert "frame-ancestors 'none'" in message or "X-Frame-Options" in message
    driver = tab.driver
    driver.switch_to.frame(tab.find("iframe"))
    try:
        assert driver.execute_script("return location.href") == "chrome-error://chromewebdata/"
    finally:
        driver.switch_to.default_content()
    profile.console.clear()


def test_injected_script_does_not_run(site: ExampleCompany, profile: ChromiumProfile, tab: Tab) -> None:
    """Content Security Policy blocks injected scripts."""
    site.ask(tab)
    tab.run(
        """const made = document.createElement('div');
        made.innerHTML = '<img src="/x.png" onerror="document.title = 1"><b style="color: red">x</b>';
        document.body.append(made);
        const script = document.createElement('script');
        script.textContent = 'document.title = 2';
        document.body.append(script);"""
    )
    tab.wait(lambda: sum("Content Security Policy" in message for message in profile.console) >= 2)
    assert tab.title.startswith("Sign in")
    profile.console.clear()


def test_form_action_restricts_targets(site: ExampleCompany, profile: ChromiumProfile, tab: Tab) -> None:
    """form-action 'self', on every page but those of a sign-in."""
    site.start_session(profile, site.make_user())
    tab.open(f"{site.url}/account/password")
    tab.run("document.getElementById('page-form').action = arguments[0]", f"{site.application.origin}/steal")
    tab.find(".button--primary").click()
    tab.wait(lambda: any("form-action" in message for message in profile.console))
    assert all(received_response.path != "/steal" for received_response in site.application.received)
    profile.console.clear()


def test_cookies_are_http_only(site: ExampleCompany, tab: Tab) -> None:
    site.ask(tab)
    site.sign_in(tab, site.make_user())
    tab.open(f"{site.url}/account")
    assert tab.run("return document.cookie") == ""


def test_referrer_is_not_sent_to_application(site: ExampleCompany, tab: Tab) -> None:
    site.ask(tab)
    site.sign_in(tab, site.make_user())
    assert tab.run("return document.referrer") == ""
    parameters = {"client_id": site.party.client_id, "post_logout_redirect_uri": site.application.goodbye}
    tab.open(f"{site.url}/oauth/v2/endsession?{urlencode(parameters)}")
    # The final page uses the same pending request.
    tab.open(tab.url.replace("/sign-out?", "/signed-out?"))
    tab.follow("Back to Invoices")
    assert tab.url == site.application.goodbye
    assert tab.run("return document.referrer") == ""
