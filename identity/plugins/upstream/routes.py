"""Where the pages of signing in elsewhere lie."""

from collections.abc import Iterable

from markupsafe import Markup
from pyramid.config import Configurator
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.domain.login_names import LoginName
from identity.domain.upstream_providers import RETURN_PATH
from identity.http.endpoints import context_of
from identity.http.security import SIGNED_IN
from identity.http.sign_ins import WaitingSignIn
from identity.pages.sign_in_page import SignInPage
from identity.plugins.upstream import ways
from identity.plugins.upstream.pages.account import IDENTITIES, Add, Remove, kept_of, sections
from identity.plugins.upstream.pages.answered import answered
from identity.plugins.upstream.pages.going import PERMISSION, WAY, Straight, go, way_to
from identity.plugins.upstream.pages.linking import Link, Unknown
from identity.plugins.upstream.pages.trying import PATH, TARGET, Try
from identity.plugins.upstream.sign_out import BACK, WAY_OUT, back, leave
from identity.services.sign_ins import ANOTHER_WAY, STRONGEST


def configure(config: Configurator) -> None:
    """All of them, and the buttons."""
    config.include("identity.pages")
    config.add_page_templates("identity.plugins.upstream:templates")
    for name, below, step in (
        ("login.upstream", "", Straight),
        ("login.upstream.unlinked", "/unlinked", Unknown),
        ("login.upstream.link", "/link", Link),
    ):
        config.add_page(
            name,
            f"/login/{{request}}/upstream{below}",
            step,
            permission=NO_PERMISSION_REQUIRED,
            factory=WaitingSignIn,
        )
    config.add_writing_path(f"{RETURN_PATH}/")
    config.add_route("upstream.go", WAY, host="login", factory=WaitingSignIn, request_method="GET")
    config.add_view(go, route_name="upstream.go", permission=NO_PERMISSION_REQUIRED)
    config.add_route("upstream.sign_out", WAY_OUT, host="login", request_method="GET")
    config.add_view(leave, route_name="upstream.sign_out", permission=NO_PERMISSION_REQUIRED)
    config.add_route("upstream.signed_out", BACK, host="login", request_method="GET")
    config.add_view(back, route_name="upstream.signed_out", permission=NO_PERMISSION_REQUIRED)
    config.add_route("upstream.answered", f"{RETURN_PATH}/{{provider}}", host="login", request_method=("GET", "POST"))
    config.add_view(answered, route_name="upstream.answered", permission=NO_PERMISSION_REQUIRED, from_elsewhere=True)
    for name, path, page in (
        ("account.identities.add", f"{IDENTITIES}/new/{{provider}}", Add),
        ("account.identities.remove", f"{IDENTITIES}/{{link}}/remove", Remove),
    ):
        config.add_page(name, path, page, permission=SIGNED_IN, authenticate="session")
    config.add_page(
        "console.upstream-providers.upstream_provider.test",
        PATH,
        Try,
        permission=PERMISSION,
        authenticate="session",
        factory=TARGET,
    )
    config.add_security_section(sections)
    config.add_account_data("linked_accounts", kept_of)
    config.add_sign_in_options(buttons)
    config.add_login_name_way(way_by_name)


def way_by_name(page: SignInPage, login_name: LoginName) -> str | None:
    """Where people are sent whose login name is of a domain for which a provider stands."""
    if page.sign_in.done(STRONGEST) or page.sign_in.done(ANOTHER_WAY):
        return None
    provider = ways.by_name(login_name, context_of(page.request))
    return None if provider is None else f"{page.root}/{ways.PAGE}"


def buttons(page: SignInPage) -> Iterable[Markup]:
    """A button for each provider at which somebody can sign in here."""
    for one in ways.offered(page.sign_in, page.request.services):
        words = page.words.t("Sign in with {provider}", provider=one.name)
        yield page.ui.button_link(words, way_to(one, page.pending.id))
