"""One file per kind of link that works once. Opening one uses nothing up: mail scanners open them too."""

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.domain.words import say
from identity.pages.drawing import HOME
from identity.pages.errors import LOGIN, error_page
from identity.pages.held_back import RESET
from identity.pages.page import Page
from identity.plugins.account.links.email import EmailConfirmed, VerifyEmail
from identity.plugins.account.links.leaving import Leaving
from identity.plugins.account.links.registration import Registration
from identity.plugins.account.links.reset import AskForReset, PasswordChanged, Reset, ResetSent
from identity.plugins.account.pages.account_page import LEAVING
from identity.services.links import LinkUsed

# Names before codes: the first route that fits is taken.
_PAGES: dict[str, tuple[str, type[Page]]] = {
    "password.reset": (RESET, AskForReset),
    "password.reset.sent": (f"{RESET}/sent", ResetSent),
    "password.reset.link": (f"{RESET}/{{code}}", Reset),
    "password.changed": ("/password/changed", PasswordChanged),
    "account.leaving": (LEAVING, Leaving),
    "email.confirmed": ("/email/confirmed", EmailConfirmed),
    "email.link": ("/email/{code}", VerifyEmail),
    "register.link": ("/register/{code}", Registration),
}

#: Where one asks for another link, by route.
_ANOTHER = {
    "password.reset.link": RESET,
    "email.link": f"{HOME}/profile",
    "register.link": LOGIN,
}


def link_used(error: LinkUsed, request: Request) -> Response:
    """410: used, too old, or never a link; nobody can tell which."""
    route = getattr(request.matched_route, "name", "")
    return error_page(
        request,
        410,
        say("This link does not work any more"),
        [say("This link was used or is too old. Ask for a new one.")],
        action=(say("Ask for a new link"), _ANOTHER.get(route, HOME)),
    )


def configure(config: Configurator) -> None:
    """Every page, for anybody; and what is said of a link that is used up."""
    for name, (path, page) in _PAGES.items():
        config.add_page(name, path, page, permission=NO_PERMISSION_REQUIRED)
    config.add_exception_view(link_used, context=LinkUsed, for_people=True)
