"""The pages: add a passkey, prove one as a second factor, sign in with one only."""

from collections.abc import Iterator
from pathlib import Path

from markupsafe import Markup
from pyramid.config import Configurator
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.api.endpoints import request_context
from identity.api.sign_in import PendingAuthorization, PendingSignInContext, SignInPage, allowed_factors
from identity.plugins.passkeys.factor import PasskeyFactor
from identity.plugins.passkeys.pages.passwordless import PasswordlessSignInPage, passwordless_ceremony
from identity.plugins.passkeys.pages.registration import RegisterPasskeyPage, UpgradeToPasskeyPage
from identity.plugins.passkeys.pages.second_factor import ProvePasskeyPage
from identity.plugins.passkeys.pages.signals import account_signals

_STATIC = Path(__file__).parent.parent / "static"


def sign_in_button(page: SignInPage) -> Iterator[Markup]:
    """The button "Sign in with a passkey", with what browsers need for autofill in the login name field."""
    policies, organization = page.request.services.policies, page.sign_in.required_organization
    if organization is None or page.sign_in.has_completed(PendingAuthorization.OTHER_METHOD_STEP):
        policy = policies.instance_policy()
    else:
        policy = policies.organization_policy(organization.id)
    if PasskeyFactor.name not in allowed_factors(request_context(page.request), policy):
        return
    variables = {"asked": passwordless_ceremony(page), "action": f"{page.base_path}/{PasskeyFactor.name}/alone"}
    yield page.renderer.render_fragment(page.request, "passkeys/sign_in_button.html", variables, language=page.language)


def add_passkey_pages(config: Configurator) -> None:
    config.include("identity.pages")
    config.add_page_templates("identity.plugins.passkeys:templates")
    for name in ("passkeys.js", "passkey_signals.js"):
        config.add_static_file(_STATIC / name)
    config.add_account_fragment(account_signals)
    config.add_factor_pages(ProvePasskeyPage, RegisterPasskeyPage)
    pages: dict[str, type[SignInPage]] = {"alone": PasswordlessSignInPage, "upgrade": UpgradeToPasskeyPage}
    for name, page in pages.items():
        config.add_page(
            f"login.{PasskeyFactor.name}.{name}",
            f"/login/{{request}}/{PasskeyFactor.name}/{name}",
            page,
            permission=NO_PERMISSION_REQUIRED,
            factory=PendingSignInContext,
        )
    config.add_sign_in_options(sign_in_button)
