"""Routes of the console: path, page, context factory and permission."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pyramid.config import Configurator
from pyramid.request import Request

from identity.http.route_contexts import RouteContext
from identity.pages.page import PageFactory
from identity.plugins.console.console_page import CONSOLE_PATH


@dataclass(frozen=True)
class ConsoleRoute:
    """``path`` is relative to /console. ``context_factory`` finds the entity and answers 404 if the caller may not
    know of it.
    """

    path: str
    page: PageFactory
    permission: str
    context_factory: Callable[[Request], RouteContext]


def add_console_routes(config: Configurator, console_routes: Iterable[ConsoleRoute]) -> None:
    """Add a route and a view for each. Views require a signed-in user with the permission."""
    for console_route in console_routes:
        name = "console" + console_route.path.replace("/", ".").replace("{", "").replace("}", "")
        config.add_page(
            name,
            CONSOLE_PATH + console_route.path,
            console_route.page,
            permission=console_route.permission,
            authenticate="session",
            factory=console_route.context_factory,
        )
