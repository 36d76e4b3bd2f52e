"""Desk: what the plugin keeps in a process for all requests."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyramid.request import Request

from identity.domain.records import NameSpace
from identity.domain.upstream_providers import UpstreamProvider
from identity.outgoing import Outgoing, TimelyResolver, networks_of
from identity.plugins.upstream.asking import SECONDS, Asked, Way
from identity.plugins.upstream.clients import Client, Credentials, client_of
from identity.plugins.upstream.metadata import Known
from identity.services.bundle import Services
from identity.settings import Settings


class Desk:
    """What is known of providers, and the way to them."""

    def __init__(self, settings: Settings, name_space: NameSpace, way: Way | None = None) -> None:
        self.name_space = name_space
        self.known = Known()
        networks = networks_of(settings.reachable_networks)
        self._asked = Asked(way or Outgoing(networks=networks, seconds=SECONDS, resolve=TimelyResolver()))

    @contextmanager
    def client(self, provider: UpstreamProvider) -> Iterator[Client]:
        """The provider's client, for what one sign-in asks of it. Raises Unreachable."""
        with self._asked.at(provider) as asking:
            yield client_of(provider, self.known, asking)


def desk_of(request: Request) -> Desk:
    """The one of the process."""
    desk: Desk = request.registry.upstream
    return desk


def credentials_of(provider: UpstreamProvider, services: Services) -> Credentials:
    """By what the service is known there; read before it is asked, since nothing is read meanwhile."""
    key_id, key = services.signing_keys.current()
    return Credentials(secret=services.upstream_providers.secret(provider), key_id=key_id, key=key)
