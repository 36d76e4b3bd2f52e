"""The network of each request's client, to share limited slots fairly (identity.fair_semaphore)."""

from collections.abc import Callable
from functools import lru_cache

from pyramid.config import Configurator
from pyramid.registry import Registry
from pyramid.request import Request
from pyramid.response import Response

from identity.domain.ip_addresses import fair_share_network
from identity.fair_semaphore import client_network_scope


@lru_cache(1000)
def request_network(address: str, trusted_proxy: str) -> str:
    """The client's network; empty if a proxy does not name the client."""
    return "" if address == trusted_proxy else fair_share_network(address)


def client_network_tween_factory(
    handler: Callable[[Request], Response], registry: Registry
) -> Callable[[Request], Response]:
    """Count each request for its client's network."""
    trusted_proxy: str = registry.application.settings.trusted_proxy

    def shared(request: Request) -> Response:
        address: str = request.environ.get("REMOTE_ADDR") or ""
        with client_network_scope(request_network(address, trusted_proxy)):
            return handler(request)

    return shared


def includeme(config: Configurator) -> None:
    """Around everything that may wait for a slot."""
    config.add_tween(
        "identity.http.client_network.client_network_tween_factory",
        under="identity.http.request_ids.request_id_tween_factory",
    )
