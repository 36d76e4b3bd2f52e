"""Content negotiation: pages for browsers, JSON for programs."""

from typing import Any

from pyramid.config import Configurator
from pyramid.request import Request

from identity.http.route_predicates import HostPredicate, Predicate
from identity.provider.endpoint import EndpointHost


def wants_html(request: Request) -> bool:
    """True on the routes of the login host, which serve only browsers; otherwise if the client accepts HTML."""
    route = getattr(request, "matched_route", None)
    if route is not None:
        return is_login_host_route(route)
    return "text/html" in request.environ.get("HTTP_ACCEPT", "").lower()


def is_login_host_route(route: Any) -> bool:
    """True if the route was added with ``host="login"``."""
    return any(
        isinstance(predicate, HostPredicate) and predicate.value is EndpointHost.LOGIN for predicate in route.predicates
    )


class WantsHtmlPredicate(Predicate):
    """View predicate ``for_people=True``: the view serves browsers; without it, the next one serves programs."""

    name = "for_people"

    def __call__(self, context: object, request: Request) -> bool:
        return wants_html(request) is self.value


def includeme(config: Configurator) -> None:
    config.add_view_predicate("for_people", WantsHtmlPredicate)
