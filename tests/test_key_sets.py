"""KeySetCache and KeySetClient: shared fetches, bounds and fair shares."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from identity.crypto.signature_keys import PrivateKey
from identity.document_cache import MAX_ENTRIES
from identity.fair_semaphore import client_network_scope
from identity.key_sets import KeySetCache, KeySetClient, KeySetForm, KeySetUnavailable
from identity.outbound_http import OutboundResponse

KEYS = json.dumps({"keys": [PrivateKey.generate(algorithm="ES256").public_key().to_jwk("one")]}).encode()


class Host:
    """Responds to all URLs, after ``released`` is set where the URL contains ``slow``."""

    def __init__(self) -> None:
        self.released, self.requests = threading.Event(), list[str]()

    def send(self, method: str, url: str, **_: Any) -> OutboundResponse:
        self.requests.append(url)
        if "slow" in url:
            self.released.wait(30)
        return OutboundResponse(200, KEYS)


def test_concurrent_requests_share_one_fetch() -> None:
    host = Host()
    client = KeySetClient(host)
    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(client.fetch, "https://slow.example/keys", "acme") for _ in range(4)]
        host.released.set()
        assert all(future.result(30)[0].id == "one" for future in found)
    assert client.find("https://slow.example/keys") is not None
    assert len(host.requests) <= 2, "a thread that comes later may fetch again"
    client.close()


def test_slow_hosts_of_one_organization_delay_no_other() -> None:
    """Security 20.6. A URL gets half of its organization's share."""
    host = Host()
    client = KeySetClient(host)

    def fetch(url: str, organization: str, network: str) -> object:
        with client_network_scope(network):
            return client.fetch(url, organization)

    with ThreadPoolExecutor(40) as pool:
        waiting = [pool.submit(fetch, f"https://slow.example/{n}", "acme", f"192.0.2.{n}") for n in range(40)]
        refused = 0
        while refused + len(host.requests) < 40:
            refused = sum(future.done() for future in waiting)
        assert fetch("https://fast.example/keys", "other", "198.51.100.1")
        host.released.set()
        errors = [future.exception(30) for future in waiting]
    assert 0 < sum(error is None for error in errors) <= 8
    assert all(isinstance(error, KeySetUnavailable) for error in errors if error is not None)
    client.close()


def test_full_cache_drops_the_oldest_of_the_largest_organization() -> None:
    cache = KeySetCache()
    cache.fetch("https://small.example/keys", lambda: OutboundResponse(200, KEYS), organization_id="small")
    for number in range(MAX_ENTRIES):
        url = f"https://large.example/{number}"
        cache.fetch(url, lambda: OutboundResponse(200, KEYS), organization_id="large")
    assert cache.find("https://small.example/keys") is not None
    assert cache.find("https://large.example/0") is None
    assert cache.find(f"https://large.example/{MAX_ENTRIES - 1}") is not None


@pytest.mark.parametrize(
    ("cache_control", "seconds"),
    [("max-age=5", 60), ("max-age=300", 300), ("public, max-age=86400", 3600), ("no-store", 60), ("", 600)],
)
def test_lifetime_follows_cache_control_within_bounds(cache_control: str, seconds: int) -> None:
    moment = [0.0]
    cache = KeySetCache(lambda: moment[0])
    cache.fetch("https://a.example", lambda: OutboundResponse(200, KEYS, cache_control))
    moment[0] = seconds - 1
    assert cache.find("https://a.example") is not None
    moment[0] = seconds
    assert cache.find("https://a.example") is None


def test_bundle_and_key_set_at_one_url_are_different() -> None:
    """Only keys for JWT-SVIDs of a bundle count (SPIFFE Trust Domain and Bundle §4.2.2)."""
    client = KeySetClient(Host())
    assert client.fetch("https://a.example", "acme")
    with pytest.raises(KeySetUnavailable):
        client.fetch("https://a.example", "acme", KeySetForm.BUNDLE)
    client.close()
