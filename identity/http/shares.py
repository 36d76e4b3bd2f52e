"""For whom each request is, so that places that are few are shared fairly (identity.fair_shares)."""

from collections.abc import Callable
from functools import lru_cache

from pyramid.config import Configurator
from pyramid.registry import Registry
from pyramid.request import Request
from pyramid.response import Response

from identity.domain.addresses import neighbourhood_of
from identity.fair_shares import asked_from


@lru_cache(1000)
def network_of(address: str, trusted_proxy: str) -> str:
    """The client's network; none where a proxy does not name the client."""
    return "" if address == trusted_proxy else neighbourhood_of(address)


def tween_factory(handler: Callable[[Request], Response], registry: Registry) -> Callable[[Request], Response]:
    """Count each request for its client's network."""
    trusted_proxy: str = registry.identity.settings.trusted_proxy

    def shared(request: Request) -> Response:
        address: str = request.environ.get("REMOTE_ADDR") or ""
        with asked_from(network_of(address, trusted_proxy)):
            return handler(request)

    return shared


def includeme(config: Configurator) -> None:
    """Around all that may wait for a place."""
    config.add_tween("identity.http.shares.tween_factory", under="identity.http.request_ids.tween_factory")
