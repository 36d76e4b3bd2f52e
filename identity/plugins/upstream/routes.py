"""Routes of upstream sign-in."""

from collections.abc import Iterable

from markupsafe import Markup
from pyramid.config import Configurator
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.api.endpoints import request_context
from identity.api.entities import UpstreamProvider
from identity.api.pages import Page
from identity.api.sign_in import LoginName, PendingAuthorization, PendingSignInContext, SignInPage
from identity.plugins.upstream import provider_selection
from identity.plugins.upstream.logout import LOGOUT_PATH, POST_LOGOUT_PATH, finish_provider_logout, start_logout
from identity.plugins.upstream.pages.authorization_redirect import (
    PERMISSION,
    PROVIDER_PATH,
    AutomaticRedirectPage,
    provider_path,
    start_provider_sign_in,
)
from identity.plugins.upstream.pages.callback import handle_callback
from identity.plugins.upstream.pages.identity_linking import ConfirmLinkingPage, UnknownIdentityPage
from identity.plugins.upstream.pages.linked_identities import (
    IDENTITIES_PATH,
    LinkIdentityPage,
    UnlinkIdentityPage,
    export_linked_identities,
    security_sections,
)
from identity.plugins.upstream.pages.provider_check import CHECK_CONTEXT_FACTORY, CHECK_PATH, CheckProviderPage


def add_upstream_pages(config: Configurator) -> None:
    config.include("identity.pages")
    config.add_page_templates("identity.plugins.upstream:templates")
    for name, below, step in (
        ("login.upstream", "", AutomaticRedirectPage),
        ("login.upstream.unlinked", "/unlinked", UnknownIdentityPage),
        ("login.upstream.link", "/link", ConfirmLinkingPage),
    ):
        config.add_page(
            name,
            f"/login/{{request}}/upstream{below}",
            step,
            permission=NO_PERMISSION_REQUIRED,
            factory=PendingSignInContext,
        )
    config.add_write_path(f"{UpstreamProvider.CALLBACK_PATH}/")
    config.add_route("upstream.go", PROVIDER_PATH, host="login", factory=PendingSignInContext, request_method="GET")
    config.add_view(start_provider_sign_in, route_name="upstream.go", permission=NO_PERMISSION_REQUIRED)
    config.add_route("upstream.sign_out", LOGOUT_PATH, host="login", request_method="GET")
    config.add_view(start_logout, route_name="upstream.sign_out", permission=NO_PERMISSION_REQUIRED)
    config.add_route("upstream.signed_out", POST_LOGOUT_PATH, host="login", request_method="GET")
    config.add_view(finish_provider_logout, route_name="upstream.signed_out", permission=NO_PERMISSION_REQUIRED)
    config.add_route(
        "upstream.answered",
        f"{UpstreamProvider.CALLBACK_PATH}/{{provider}}",
        host="login",
        request_method=("GET", "POST"),
    )
    config.add_view(
        handle_callback, route_name="upstream.answered", permission=NO_PERMISSION_REQUIRED, from_elsewhere=True
    )
    for name, path, page in (
        ("account.identities.add", f"{IDENTITIES_PATH}/new/{{provider}}", LinkIdentityPage),
        ("account.identities.remove", f"{IDENTITIES_PATH}/{{link}}/remove", UnlinkIdentityPage),
    ):
        config.add_page(name, path, page, permission=Page.SIGNED_IN_PERMISSION, authenticate="session")
    config.add_page(
        "console.upstream-providers.upstream_provider.test",
        CHECK_PATH,
        CheckProviderPage,
        permission=PERMISSION,
        authenticate="session",
        factory=CHECK_CONTEXT_FACTORY,
    )
    config.add_security_section(security_sections)
    config.add_account_data("linked_accounts", export_linked_identities)
    config.add_sign_in_options(provider_buttons)
    config.add_login_name_redirect(login_name_redirect)


def login_name_redirect(page: SignInPage, login_name: LoginName) -> str | None:
    """The redirect for a login name whose domain has a provider."""
    if page.sign_in.has_completed(PendingAuthorization.STRONGEST_PROOF_STEP) or page.sign_in.has_completed(
        PendingAuthorization.OTHER_METHOD_STEP
    ):
        return None
    provider = provider_selection.find_provider_by_domain(login_name, request_context(page.request))
    return None if provider is None else f"{page.base_path}/{provider_selection.PAGE_NAME}"


def provider_buttons(page: SignInPage) -> Iterable[Markup]:
    """A button for each provider that the sign-in can use."""
    for provider in provider_selection.available_providers(page.sign_in, page.request.services):
        label = page.translator.gettext("Sign in with {provider}", provider=provider.name)
        yield page.template_macros.button_link(label, provider_path(provider, page.pending_authorization.id))
