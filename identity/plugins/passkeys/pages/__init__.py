"""The pages: to add a passkey, to prove one as second factor, and to sign in with one alone."""

from collections.abc import Iterator
from pathlib import Path

from markupsafe import Markup
from pyramid.config import Configurator
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.http.endpoints import context_of
from identity.http.sign_ins import WaitingSignIn
from identity.pages.sign_in_page import SignInPage
from identity.plugins.passkeys.factor import Passkeys
from identity.plugins.passkeys.pages.add import AddPasskey
from identity.plugins.passkeys.pages.alone import SignInAlone, asked_alone
from identity.plugins.passkeys.pages.prove import ProvePasskey
from identity.provider.assurance import offered
from identity.services.sign_ins import ANOTHER_WAY

_STATIC = Path(__file__).parent.parent / "static"


def offer(page: SignInPage) -> Iterator[Markup]:
    """The button "Sign in with a passkey", with what browsers need to offer passkeys in the field of the login name."""
    policies, organization = page.request.services.policies, page.sign_in.organization
    if organization is None or page.sign_in.done(ANOTHER_WAY):
        policy = policies.of_instance()
    else:
        policy = policies.of(organization.id)
    if not any(one.name == Passkeys.name for one in offered(context_of(page.request), policy)):
        return
    variables = {"asked": asked_alone(page), "action": f"{page.root}/{Passkeys.name}/alone"}
    yield page.pages.part(page.request, "passkeys/option.html", variables, language=page.language)


def configure(config: Configurator) -> None:
    """Pages, templates and script."""
    config.include("identity.pages")
    config.add_page_templates("identity.plugins.passkeys:templates")
    config.add_static_file(_STATIC / "passkeys.js")
    config.add_factor_pages(ProvePasskey, AddPasskey)
    config.add_page(
        f"login.{Passkeys.name}.alone",
        f"/login/{{request}}/{Passkeys.name}/alone",
        SignInAlone,
        permission=NO_PERMISSION_REQUIRED,
        factory=WaitingSignIn,
    )
    config.add_sign_in_options(offer)
