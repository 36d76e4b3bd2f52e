"""/login: where the service's own pages send people who are not signed in. / leads to them."""

import re
from urllib.parse import urlencode

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.http.cookies import headers_for
from identity.http.endpoints import context_of
from identity.http.locale import in_address
from identity.pages.drawing import HOME, redirect
from identity.pages.errors import LOGIN, TARGET
from identity.pages.signed_in_page import FRESH, FRESH_FOR
from identity.provider.endpoints.authorize import PATH as AUTHORIZE
from identity.provider.interaction import ENROL
from identity.provider.request import Cookie, CookieKind
from identity.services.sign_ins import STRONGEST

_TARGET = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]{0,2000}\Z")

#: The bare address.
ROOT = "/"


def safe_target(asked: str) -> str:
    """The path to go to after signing in, if it is one of this host; else the bare address."""
    return asked if _TARGET.match(asked) else ROOT


def enter(request: Request) -> Response:
    """Begin a sign-in of our own, and go on with it: whoever is signed in arrives at once."""
    target = safe_target(request.GET.get(TARGET, ""))
    sign_ins, demands = request.services.sign_ins, _demands(request)
    pending, secret = sign_ins.begin(demands, target=target, ui_locales=in_address(request))
    if demands and request.account is not None:
        sign_ins.choose(pending, request.account)
    return going_on(request, pending.id, secret)


def _demands(request: Request) -> dict[str, str]:
    """What the page that sent somebody here needs: that they have just proved who they are as well as they can, and
    perhaps that they set up a factor."""
    enrol = request.GET.get(ENROL, "")
    if not enrol and FRESH not in request.GET:
        return {}
    demands = {"max_age": str(int(FRESH_FOR.total_seconds())), "acr": STRONGEST}
    return {**demands, ENROL: enrol} if enrol in context_of(request).protocol.factors else demands


def going_on(request: Request, request_id: str, secret: str) -> Response:
    """303 to where it is decided what comes next, for a sign-in that begins in this browser."""
    response = redirect(request, f"{AUTHORIZE}/{request_id}")
    cookie = Cookie(CookieKind.SIGN_IN, request_id, secret, request.registry.identity.settings.sign_in_lifetime)
    for name, value in headers_for(request, (cookie,)):
        response.headers.add(name, value)
    return response


def arrive(request: Request) -> Response:
    """Whoever opens the bare address, or clicks on the mark, finds the account; who manages something, the console."""
    account = request.account
    if account is None:
        return redirect(request, f"{LOGIN}?{urlencode({TARGET: ROOT})}")
    for_managers = next((one.href for one in request.registry.pages.menu if one.for_managers), HOME)
    manages = bool(request.services.storage.managers.of_user(account.subject.user.id))
    return redirect(request, for_managers if manages else HOME)


def configure(config: Configurator) -> None:
    """GET / and GET /login. The latter writes: the sign-in waits as a row."""
    config.add_route("home", ROOT, host="login", request_method="GET")
    config.add_view(arrive, route_name="home", permission=NO_PERMISSION_REQUIRED)
    config.registry.identity.writing_paths[LOGIN] = True
    config.add_route("login", LOGIN, host="login", request_method="GET")
    config.add_view(enter, route_name="login", permission=NO_PERMISSION_REQUIRED)
