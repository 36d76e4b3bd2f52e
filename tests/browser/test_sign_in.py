"""Sign-in in a browser."""

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import ChromiumProfile, MakeProfile
from tests.browser.example_company import ExampleCompany
from tests.browser.tab import Tab

WRONG = "The login name or the password is wrong. Check both and try again."


def test_sign_in_returns_code_to_application(site: ExampleCompany, tab: Tab) -> None:
    anna = site.make_user()
    authorization = site.party.new_request(scope="openid profile")
    tab.open(site.application.link_to(authorization.url))
    tab.follow("Sign in")
    assert (tab.heading, tab.focused, tab.status) == ("Sign in", "field-login_name", 200)
    assert "to continue to Invoices · Acme GmbH" in tab.text
    tab.send(login_name=anna.login_name)
    assert (tab.heading, tab.focused) == ("Enter your password", "field-password")
    assert anna.login_name in tab.text
    tab.send(password=anna.password)
    assert tab.heading == "Welcome to Invoices"
    assert site.tokens(tab, authorization).claims["sub"] == anna.user.id


def test_sign_in_by_keyboard(site: ExampleCompany, tab: Tab) -> None:
    anna = site.make_user()
    authorization = site.ask(tab)
    tab.type(anna.login_name)
    with tab.leaving():
        tab.type(Keys.ENTER)
    assert tab.focused == "field-password"
    tab.type("not hers")
    with tab.leaving():
        tab.type(Keys.ENTER)
    assert tab.focused == "field-password"
    tab.type(anna.password, Keys.TAB)
    assert tab.text_of(":focus") == "Show Password"
    tab.type(Keys.SPACE)
    assert tab.value("password") == anna.password
    assert tab.field("password").get_attribute("type") == "text"
    tab.type(Keys.TAB)
    assert tab.text_of(":focus") == "Sign in"
    with tab.leaving():
        tab.type(Keys.SPACE)
    site.tokens(tab, authorization)


@pytest.mark.thorough
def test_wrong_password_error_is_at_its_field(site: ExampleCompany, tab: Tab) -> None:
    anna = site.make_user()
    authorization = site.ask(tab)
    tab.send(login_name=anna.login_name)
    tab.send(password="not hers")
    assert tab.status == 422
    assert tab.title.startswith("Error: Enter your password – ")
    field = tab.field("password")
    assert (field.get_attribute("aria-invalid"), tab.value("password")) == ("true", "")
    first, *_ = str(field.get_attribute("aria-describedby")).split()
    assert tab.text_of(f"#{first}") == f"Error: {WRONG}"
    assert tab.focused == "field-password"
    tab.send(password=anna.password)
    site.tokens(tab, authorization)


@pytest.mark.thorough
def test_unknown_login_name_shows_the_same_page(site: ExampleCompany, tab: Tab) -> None:
    pages = []
    for name in (site.make_user().login_name, "nobody@nowhere.example"):
        site.ask(tab)
        tab.send(login_name=name)
        tab.send(password="wrong")
        assert tab.status == 422
        pages.append((tab.title, tab.text.replace(name, "…"), tab.focused))
    assert pages[0] == pages[1]


@pytest.mark.thorough
def test_not_you_keeps_login_name(site: ExampleCompany, tab: Tab) -> None:
    site.ask(tab)
    tab.send(login_name="anna@acme.example")
    tab.follow("Not you?")
    assert tab.value("login_name") == "anna@acme.example"


@pytest.mark.thorough
def test_one_time_password_must_be_changed(site: ExampleCompany, tab: Tab) -> None:
    anna = site.make_user(must_change=True)
    authorization = site.ask(tab)
    site.sign_in(tab, anna)
    assert (tab.heading, tab.focused) == ("Choose a new password", "field-new_password")
    tab.send(new_password="short", new_password_again="other")
    assert (tab.status, tab.focused) == (422, "errors")
    assert [link.get_attribute("hash") for link in tab.all("#errors a")] == ["#field-new_password"]
    tab.all("#errors a")[0].click()
    assert tab.focused == "field-new_password"
    tab.send(new_password="an entirely new one", new_password_again="an entirely new one")
    site.tokens(tab, authorization)


@pytest.mark.thorough
def test_account_chooser_selects_session(site: ExampleCompany, profile: ChromiumProfile, tab: Tab) -> None:
    anna, bert = site.make_user(), site.make_user("Bert", "Sommer")
    for person in (anna, bert):
        site.start_session(profile, person)
    authorization = site.ask(tab)
    assert tab.heading == "Choose an account"
    tab.press(anna.login_name)
    assert site.tokens(tab, authorization).claims["sub"] == anna.user.id


@pytest.mark.thorough
def test_prompt_select_account_shows_chooser(site: ExampleCompany, profile: ChromiumProfile, tab: Tab) -> None:
    anna, bert = site.make_user(), site.make_user("Bert", "Sommer")
    site.start_session(profile, anna)
    authorization = site.ask(tab, prompt="select_account")
    assert tab.heading == "Choose an account"
    tab.press("Use another account")
    site.sign_in(tab, bert)
    assert site.tokens(tab, authorization).claims["sub"] == bert.user.id


@pytest.mark.thorough
def test_prompt_login_requires_password(site: ExampleCompany, profile: ChromiumProfile, tab: Tab) -> None:
    anna = site.make_user()
    site.start_session(profile, anna)
    authorization = site.ask(tab, prompt="login")
    assert tab.heading == "Enter your password"
    assert "Invoices asks you to enter your password again." in tab.text
    tab.send(password=anna.password)
    site.tokens(tab, authorization)


@pytest.mark.thorough
def test_consent_decision(site: ExampleCompany, profile: ChromiumProfile, tab: Tab) -> None:
    site.start_session(profile, site.make_user())
    authorization = site.ask(tab, prompt="consent", scope="openid email")
    assert tab.heading == "Allow access?"
    tab.press("Allow")
    site.tokens(tab, authorization)
    site.ask(tab, prompt="consent", scope="openid email")
    tab.press("Deny")
    assert "error=access_denied" in tab.url


@pytest.mark.thorough
def test_language_change_keeps_input(site: ExampleCompany, tab: Tab) -> None:
    anna = site.make_user()
    authorization = site.ask(tab)
    tab.fill(login_name=anna.login_name)
    tab.press("Deutsch")
    assert (tab.heading, tab.value("login_name")) == ("Anmelden", anna.login_name)
    assert tab.find("html").get_attribute("lang") == "de"
    tab.send()
    # The following pages use the language, too.
    assert tab.find("html").get_attribute("lang") == "de"
    tab.send(password=anna.password)
    site.tokens(tab, authorization)


@pytest.mark.thorough
@pytest.mark.parametrize("languages", ["de-CH,en;q=0.5", "zh-Hans", "pl, it;q=0.1"])
def test_pages_use_browser_language(site: ExampleCompany, make_profile: MakeProfile, languages: str) -> None:
    tab = make_profile(languages=languages).tab()
    site.ask(tab)
    spoken = tab.find("html").get_attribute("lang")
    assert spoken in languages
    assert spoken != "en"


@pytest.mark.thorough
def test_form_post_response_mode(site: ExampleCompany, tab: Tab) -> None:
    """Form Post Response Mode: the page submits itself."""
    authorization = site.ask(tab, response_mode="form_post")
    site.sign_in(tab, site.make_user())
    tab.wait(lambda: tab.url.startswith(site.application.origin))
    received = site.application.received[-1]
    assert (received.method, received.path) == ("POST", "/callback")
    site.redeemed(received.members, authorization)


@pytest.mark.thorough
def test_fragment_response_mode(site: ExampleCompany, tab: Tab) -> None:
    authorization = site.ask(tab, response_type="id_token")
    site.sign_in(tab, site.make_user())
    address, _, fragment = tab.url.partition("#")
    assert address == authorization.parameters["redirect_uri"]
    assert tab.text_of("#fragment") == f"#{fragment}"
    assert site.application.received[-1].members == {}
    assert "id_token=" in fragment


@pytest.mark.thorough
def test_application_may_redirect_to_another_site(site: ExampleCompany, tab: Tab) -> None:
    """Browsers apply form-action to redirects after a POST, so sign-in pages must not set it (pages §3.4)."""
    authorization = site.ask(tab, redirect_uri=site.application.onward)
    site.sign_in(tab, site.make_user())
    assert tab.url.startswith(f"{site.application.other_origin}/welcome?")
    assert f"state={authorization.parameters['state']}" in tab.url


@pytest.mark.thorough
def test_account_page_sign_in(site: ExampleCompany, tab: Tab) -> None:
    anna = site.make_user()
    tab.open(f"{site.url}/account/sessions")
    assert "to continue to your account" in tab.text
    site.sign_in(tab, anna)
    assert tab.url == f"{site.url}/account/sessions"


@pytest.mark.thorough
def test_password_can_be_shown(site: ExampleCompany, tab: Tab) -> None:
    anna = site.make_user()
    authorization = site.ask(tab)
    tab.send(login_name=anna.login_name)
    tab.fill(password=anna.password)
    for label, kind in (("Show", "text"), ("Hide", "password"), ("Show", "text")):
        (button,) = (element for element in tab.all("#page-form button[type=button]") if label in element.text)
        button.click()
        assert tab.field("password").get_attribute("type") == kind
    tab.send()
    site.tokens(tab, authorization)
