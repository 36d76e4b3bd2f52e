"""The Pyramid application: an explicit, ordered list of what is included; there is no scan."""

from pyramid.config import Configurator


def includeme(config: Configurator) -> None:
    """Configure Pyramid around ``config.registry.identity``."""
    config.include("identity.http.request")
    config.include("identity.http.request_ids")
    config.include("identity.http.request_observers")
    config.include("identity.http.access_log")
    config.include("identity.http.client_network")
    config.include("identity.http.transactions")
    config.include("identity.http.route_predicates")
    config.include("identity.http.security_policy")
    config.include("identity.http.security_headers")
    config.include("identity.http.html_negotiation")
    config.include("identity.http.csrf")
    config.include("identity.http.impersonation")
    config.include("identity.http.error_views")
    config.include("identity.http.large_documents")
    config.include("identity.http.endpoint_routes")
    config.include("identity.http.health")
