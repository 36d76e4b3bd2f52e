"""Pyramid, and nothing else than Pyramid: the explicit list of what is wired, in order; there is no scan."""

from pyramid.config import Configurator


def includeme(config: Configurator) -> None:
    """Wire the rim around ``config.registry.identity``."""
    config.include("identity.http.requests")
    config.include("identity.http.request_ids")
    config.include("identity.http.observers")
    config.include("identity.http.request_log")
    config.include("identity.http.shares")
    config.include("identity.http.transactions")
    config.include("identity.http.routes")
    config.include("identity.http.security")
    config.include("identity.http.headers")
    config.include("identity.http.people")
    config.include("identity.http.csrf")
    config.include("identity.http.errors")
    config.include("identity.http.documents")
    config.include("identity.http.endpoints")
    config.include("identity.http.health")
