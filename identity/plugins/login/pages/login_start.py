"""/login, where the service's own pages redirect users without a session, and /, which redirects to these pages."""

import re
from urllib.parse import urlencode

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.api.endpoints import request_context
from identity.api.pages import Page, RequestLanguage, SignedInPage, see_other
from identity.api.sign_in import PendingAuthorization, SignIn

_TARGET = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]{0,2000}\Z")

ROOT_PATH = "/"


def parse_target_path(text: str) -> str:
    """The path to return to if it is on this host, else the root path."""
    return text if _TARGET.match(text) else ROOT_PATH


def start_login(request: Request) -> Response:
    """Start a sign-in to the service's own pages; a signed-in user returns at once."""
    target = parse_target_path(request.GET.get(Page.TARGET_PARAM, ""))
    sign_ins, demands = request.services.sign_ins, _required_authentication(request)
    pending, secret = sign_ins.begin(demands, target=target, ui_locales=RequestLanguage.requested(request))
    if demands and request.signed_in_account is not None:
        sign_ins.select_account(pending, request.signed_in_account)
    return Page.resume_sign_in(request, pending.id, secret)


def _required_authentication(request: Request) -> dict[str, str]:
    """What the redirecting page requires: a recent authentication with all factors, and possibly an enrolment."""
    enrol = request.GET.get(SignIn.ENROL_PARAMETER, "")
    if not enrol and SignedInPage.RECENT_AUTHENTICATION_PARAM not in request.GET:
        return {}
    demands = {
        "max_age": str(int(SignedInPage.RECENT_AUTHENTICATION_AGE.total_seconds())),
        "acr": PendingAuthorization.STRONGEST_PROOF_STEP,
    }
    return {**demands, SignIn.ENROL_PARAMETER: enrol} if enrol in request_context(request).protocol.factors else demands


def redirect_root(request: Request) -> Response:
    """Redirect managers to the console, and other users to their account."""
    account = request.signed_in_account
    if account is None:
        return see_other(request, f"{Page.LOGIN_PATH}?{urlencode({Page.TARGET_PARAM: ROOT_PATH})}")
    for_managers = next(
        (item.href for item in request.registry.pages.menu if item.requires_manager_role), Page.ACCOUNT_PATH
    )
    services = request.services
    manages = not account.session.is_impersonated and bool(
        services.storage.managers.list_effective(account.subject.user.id, services.now)
    )
    return see_other(request, for_managers if manages else Page.ACCOUNT_PATH)


def add_start_routes(config: Configurator) -> None:
    """GET / and GET /login. The latter writes: it stores the pending sign-in."""
    config.add_route("home", ROOT_PATH, host="login", request_method="GET")
    config.add_view(redirect_root, route_name="home", permission=NO_PERMISSION_REQUIRED)
    config.registry.write_paths.exact[Page.LOGIN_PATH] = True
    config.add_route("login", Page.LOGIN_PATH, host="login", request_method="GET")
    config.add_view(start_login, route_name="login", permission=NO_PERMISSION_REQUIRED)
