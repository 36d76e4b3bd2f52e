"""A company's first steps: factors for managers, a lost phone, and users of an identity provider."""

import os
from collections.abc import Iterator
from pathlib import Path

import pyotp
import pytest

from identity.domain.applications import ApplicationType
from identity.domain.policies import SecondFactorRule
from identity.services.commands.policies import ChangePolicy
from identity.services.commands.upstream_providers import ChangeUpstreamProvider
from identity.testing.assembled_service import RsaKeyPool
from tests.browser.chromium import Chromium
from tests.browser.devtools_authenticator import DevToolsAuthenticator
from tests.browser.example_company import CompanyUser, ExampleCompany, acme
from tests.browser.tab import Tab

TWO, RESISTANT = "urn:service:iam:acr:2", "urn:service:iam:acr:phr"
#: The optional folder for screenshots of these steps.
PICTURES = os.environ.get("IDENTITY_PICTURES")


@pytest.fixture
def company(chromium: Chromium, on_memory: dict[str, str], key_pool: RsaKeyPool) -> Iterator[ExampleCompany]:
    """A service with its own policy and access to loopback."""
    with acme(on_memory | {"identity.outgoing_networks": "127.0.0.0/8 ::1/128"}, key_pool) as site:
        yield site


@pytest.fixture
def provider_site(chromium: Chromium, on_memory: dict[str, str], key_pool: RsaKeyPool) -> Iterator[ExampleCompany]:
    """Another service as the identity provider."""
    with acme(on_memory, key_pool) as site:
        yield site


def save_picture(tab: Tab, name: str) -> None:
    """Save a screenshot of the page."""
    if PICTURES:
        (Path(PICTURES) / f"{name}.png").write_bytes(tab.picture())


def enrol_app(tab: Tab) -> pyotp.TOTP:
    """Read the secret of the enrolment page into an app."""
    (link,) = tab.all("a[href^='otpauth:']")
    app = pyotp.parse_uri(str(link.get_attribute("href")))
    assert isinstance(app, pyotp.TOTP)
    return app


def code(site: ExampleCompany, app: pyotp.TOTP) -> str:
    """The app's next code, after advancing the clock by one step."""
    site.world.clock.advance(30)
    return app.at(site.world.clock())


def sign_out(site: ExampleCompany, tab: Tab) -> None:
    tab.open(f"{site.url}/sign-out")
    tab.send()


@pytest.mark.thorough
def test_owner_requires_second_factor_of_managers(company: ExampleCompany, tab: Tab) -> None:
    """The owner is the first to comply: adds a passkey, then an app, and signs in by passkey alone."""
    owner, device = company.make_manager(), DevToolsAuthenticator(tab)
    tab.open(f"{company.url}/console/instance/policy/edit")
    company.sign_in(tab, owner)
    tab.fill(second_factor=SecondFactorRule.REQUIRED_FOR_MANAGERS.value)
    save_picture(tab, "1-policy")
    tab.send()
    # The owner's is the only session without a second factor.
    assert "These rules end 1 session. Your own session is among them. Save again to confirm." in tab.text
    tab.send()
    assert tab.heading == "Set up a second factor", tab.text
    save_picture(tab, "2-set-up")
    tab.press("Passkey")
    save_picture(tab, "3-passkey")
    tab.send()
    assert tab.heading == "Sign-in policy of the instance"
    assert "Required for all managers" in tab.text
    save_picture(tab, "4-policy-saved")
    tab.open(f"{company.url}/login?target=/account/security&enrol=totp")
    app = enrol_app(tab)
    save_picture(tab, "5-app")
    tab.send(code=code(company, app))
    assert "Authenticator app" in tab.text
    save_picture(tab, "6-security")
    sign_out(company, tab)
    device.present(False)
    tab.open(f"{company.url}/login?target=/console/instance/policy")
    save_picture(tab, "7-sign-in")
    device.present(True)
    tab.press("Sign in with a passkey")
    assert tab.heading == "Sign-in policy of the instance"
    # The password alone is no longer sufficient.
    sign_out(company, tab)
    device.present(False)
    tab.open(f"{company.url}/login?target=/console")
    company.sign_in(tab, owner)
    tab.follow("Use another method")
    assert tab.heading == "Verify it's you"
    save_picture(tab, "8-choice")


@pytest.mark.thorough
def test_recovery_code_replaces_lost_phone(company: ExampleCompany, tab: Tab) -> None:
    strict = company.world.make_organization()
    with company.world.transaction_services() as services:
        services.policies.change(strict.id, ChangePolicy(second_factor=SecondFactorRule.REQUIRED))
    anna: CompanyUser = company.make_user(organization=strict)
    tab.open(f"{company.url}/login?target=/account/security")
    company.sign_in(tab, anna)
    tab.press("Authenticator app")
    tab.send(code=code(company, enrol_app(tab)))
    assert tab.heading == "Security"
    tab.open(f"{company.url}/login?target=/account/security&enrol=recovery_codes")
    tab.send()
    codes = tab.text_of("#codes").split()
    assert len(codes) == 10
    save_picture(tab, "9-recovery-codes")
    tab.follow("I have saved the codes")
    assert tab.heading == "Security"
    sign_out(company, tab)
    authorization = company.ask(tab, acr_values=TWO)
    company.sign_in(tab, anna)
    if tab.heading != "Verify it's you":
        tab.follow("Use another method")
    tab.press("Recovery codes")
    save_picture(tab, "10-recovery-code")
    tab.send(code=codes[3].lower().replace("-", ""))
    if "/consent" in tab.url:
        tab.send()
    assert company.tokens(tab, authorization).claims["acr"] == TWO
    # The lost app is replaced by a new one.
    tab.open(f"{company.url}/account/security")
    assert "9 codes left" in tab.text
    tab.open(f"{company.url}/login?target=/account/security&enrol=totp")
    tab.send(code=code(company, enrol_app(tab)), name="New phone")
    assert "New phone" in tab.text
    save_picture(tab, "11-new-phone")


@pytest.mark.thorough
def test_upstream_user_reaches_the_application(
    company: ExampleCompany, provider_site: ExampleCompany, tab: Tab
) -> None:
    """The first sign-in creates an account and issues tokens."""
    provider = company.world.make_upstream_provider(
        company.organization,
        name="Elsewhere",
        issuer=provider_site.world.issuer,
        client_id="unknown-yet",
        create_accounts=True,
    )
    registered = provider_site.world.make_application(
        type=ApplicationType.WEB,
        redirect_uris=(f"{company.url}{provider.callback_path}",),
        authentication_method="client_secret_basic",
        development=True,
    )
    company.world.operator_services.upstream_providers.change(
        provider.id, ChangeUpstreamProvider.build(client_id=registered.client_id, client_secret=registered.secret)
    )
    carla = provider_site.make_user("Carla", "Rossi")
    authorization = company.ask(tab, scope="openid profile")
    save_picture(tab, "12-buttons")
    tab.follow("Sign in with Elsewhere")
    assert tab.url.startswith(provider_site.url)
    save_picture(tab, "13-elsewhere")
    provider_site.sign_in(tab, carla)
    if "/consent" in tab.url:
        tab.send()
    assert tab.heading == "Welcome to Invoices", tab.text
    claims = company.tokens(tab, authorization).claims
    user = company.world.operator_services.users.get(claims["sub"])
    assert (user.profile.given_name, user.profile.family_name) == ("Carla", "Rossi")
    assert user.organization_id == company.organization.id
