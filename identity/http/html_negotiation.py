"""Content negotiation: pages for browsers, JSON for programs."""

from typing import Any

from pyramid.config import Configurator
from pyramid.request import Request

from identity.http.route_predicates import HostPredicate
from identity.provider.endpoint import EndpointHost

_LOGIN_HOST_TEXT = f"host = {EndpointHost.LOGIN}"


def wants_html(request: Request) -> bool:
    """True on the routes of the login host, which serve only browsers; otherwise if the client accepts HTML."""
    route = getattr(request, "matched_route", None)
    if route is not None:
        return is_login_host_route(route)
    return "text/html" in request.environ.get("HTTP_ACCEPT", "").lower()


def is_login_host_route(route: Any) -> bool:
    """True if the route was added with ``host="login"``."""
    return any(
        isinstance(predicate, HostPredicate) and predicate.text() == _LOGIN_HOST_TEXT for predicate in route.predicates
    )


class WantsHtmlPredicate:
    """View predicate ``for_people=True``: the view serves browsers; without it, the next one serves programs."""

    def __init__(self, value: bool, config: Configurator) -> None:
        self._value = bool(value)

    def text(self) -> str:
        return f"for_people = {self._value}"

    phash = text

    def __call__(self, context: object, request: Request) -> bool:
        return wants_html(request) is self._value


def includeme(config: Configurator) -> None:
    config.add_view_predicate("for_people", WantsHtmlPredicate)
