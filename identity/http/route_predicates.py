"""Predicates of routes: ``host=`` (issuer, base or login) and ``authenticate=`` (which credential the route accepts);
of views: ``query_parameter=``.
"""

from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit

from pyramid.config import Configurator
from pyramid.interfaces import IRoutesMapper
from pyramid.predicates import RequestMethodPredicate
from pyramid.request import Request

from identity.provider.endpoint import EndpointHost
from identity.settings import Settings

#: The kinds of credentials that a route can accept: an access token, or a session cookie.
CREDENTIALS = ("bearer", "session")

_DEFAULT_PORTS = {"https": 443, "http": 80}


def accepted_hosts(url: str) -> frozenset[str]:
    """Host headers accepted in requests for this URL."""
    parts = urlsplit(url)
    names = {parts.netloc.lower()}
    default = _DEFAULT_PORTS[parts.scheme]
    if parts.port in (None, default):
        bare = parts.netloc.lower().removesuffix(f":{default}")
        names |= {bare, f"{bare}:{default}"}
    return frozenset(names)


def accepted_hosts_by_address(settings: Settings) -> dict[EndpointHost, frozenset[str]]:
    """The accepted Host headers of each of the three URLs."""
    return {
        EndpointHost.ISSUER: accepted_hosts(settings.issuer_url),
        EndpointHost.BASE: accepted_hosts(settings.base_url),
        EndpointHost.LOGIN: accepted_hosts(settings.login_url),
    }


class Predicate:
    """A predicate of routes or views by its name. Pyramid takes two with the same text for the same predicate."""

    name: ClassVar[str]

    def __init__(self, value: Any, config: Configurator) -> None:
        self.value = value

    def text(self) -> str:
        return f"{self.name} = {self.value}"

    phash = text


class HostPredicate(Predicate):
    """True if the request came to the named host; the configuration decides, forwarding headers never."""

    name = "host"

    def __init__(self, value: str, config: Configurator) -> None:
        super().__init__(EndpointHost(value), config)
        self._names = accepted_hosts_by_address(config.registry.application.settings)[self.value]

    def __call__(self, info: Any, request: Request) -> bool:
        name = request.environ.get("HTTP_HOST", "")
        return name in self._names or name.lower() in self._names


class AuthenticatePredicate(Predicate):
    """Always true: it only stores which kind of credential the route accepts, for the security policy."""

    name = "authenticate"

    def __init__(self, value: str, config: Configurator) -> None:
        if value not in CREDENTIALS:
            raise ValueError(f"authenticate must be one of {', '.join(CREDENTIALS)}, not {value}")
        super().__init__(value, config)

    def __call__(self, info: Any, request: Request) -> bool:
        return True


class QueryParameterPredicate(Predicate):
    """A view predicate: true if the query names the parameter. Unlike Pyramid's ``request_param`` it reads no body."""

    name = "query_parameter"

    def __call__(self, context: Any, request: Request) -> bool:
        query: str = request.environ.get("QUERY_STRING", "")
        return any(name == self.value for name, _ in parse_qsl(query, keep_blank_values=True))


def route_credential(request: Request) -> str | None:
    """The kind of credential that the matched route accepts; None for public ones."""
    route = getattr(request, "matched_route", None)
    for predicate in getattr(route, "predicates", ()):
        if isinstance(predicate, AuthenticatePredicate):
            credential: str = predicate.value
            return credential
    return None


def allowed_methods(request: Request) -> tuple[str, ...]:
    """The methods that some route answers at this path; empty if there is no route."""
    mapper = request.registry.queryUtility(IRoutesMapper)
    path = request.environ.get("PATH_INFO", "").encode("latin-1").decode("utf-8")
    found: set[str] = set()
    for route in mapper.get_routes():
        match = route.match(path)
        if match is None:
            continue
        methods = {
            name
            for predicate in route.predicates
            if isinstance(predicate, RequestMethodPredicate)
            for name in predicate.val
        }
        predicates = (predicate for predicate in route.predicates if not isinstance(predicate, RequestMethodPredicate))
        if all(predicate({"match": match, "route": route}, request) for predicate in predicates):
            found |= methods
    return tuple(sorted(found))


class ContextOnlyTraverser:
    """The route's context is the view's context: there is no resource tree to traverse. Pyramid's traverser takes
    longer than finding the route, and trusts the header X-Vhm-Root."""

    def __init__(self, root: Any) -> None:
        self._root = root

    def __call__(self, request: Request) -> dict[str, Any]:
        """The result of a traversal (``pyramid.interfaces.ITraverser``)."""
        found = {"context": self._root, "root": self._root, "view_name": "", "subpath": (), "traversed": ()}
        return {**found, "virtual_root": self._root, "virtual_root_path": ()}


def includeme(config: Configurator) -> None:
    config.add_traverser(ContextOnlyTraverser)
    config.add_route_predicate("host", HostPredicate)
    config.add_route_predicate("authenticate", AuthenticatePredicate)
    config.add_view_predicate("query_parameter", QueryParameterPredicate)
