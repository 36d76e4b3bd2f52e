"""Fair shares: no network and no organization holds more than a quarter of the permits, and one stays free for the
next."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from contextvars import Context

import pytest

from identity.fair_semaphore import FairSemaphore, NoFreeSlot, assign_organization, client_network_scope


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as open_:
        yield open_


def acquired(
    shares: FairSemaphore, stack: ExitStack, *, network: str = "", organization: str = "", known: bool = False
) -> int:
    """The number of permits that a greedy caller gets."""
    number = 0
    with client_network_scope(network), FairSemaphore.organization_scope(organization, known_browser=known):
        while True:
            try:
                stack.callback(shares.acquire())
            except NoFreeSlot:
                return number
            number += 1


def test_one_organization_gets_a_quarter_from_all_networks(stack: ExitStack) -> None:
    shares = FairSemaphore(32)
    got = [acquired(shares, stack, network=f"192.0.{number}.0/24", organization="acme") for number in range(9)]
    assert sum(got) == 8
    assert acquired(shares, stack, network="198.51.100.0/24", organization="bolt") > 0


def test_one_network_gets_a_quarter_of_all_organizations(stack: ExitStack) -> None:
    shares = FairSemaphore(32)
    assert sum(acquired(shares, stack, network="192.0.2.0/24", organization=str(number)) for number in range(9)) == 8
    assert acquired(shares, stack, network="198.51.100.0/24", organization="acme") == 8


def test_requests_without_organization_share_one_bucket(stack: ExitStack) -> None:
    shares = FairSemaphore(32)
    assert sum(acquired(shares, stack, network=f"192.0.{number}.0/24") for number in range(9)) == 8
    assert acquired(shares, stack, network="198.51.100.0/24", organization="acme") == 8


@pytest.mark.parametrize("limit", [2, 4, 8, 32, 161])
def test_greedy_networks_leave_a_permit_free(stack: ExitStack, limit: int) -> None:
    shares = FairSemaphore(limit)
    greedy = max(1, min(3, limit // 2))
    for number in range(greedy):
        acquired(shares, stack, network=f"192.0.{number}.0/24", organization=str(number))
    assert acquired(shares, stack, network="198.51.100.0/24", organization="next") > 0


def test_known_browsers_have_reserved_permits(stack: ExitStack) -> None:
    shares = FairSemaphore(16)
    for number in range(100):
        acquired(shares, stack, network=f"192.{number}.0.0/24", organization=str(number))
    assert acquired(shares, stack, network="198.51.100.0/24", organization="new") == 0
    assert acquired(shares, stack, network="198.51.100.0/24", organization="new", known=True) > 0


def test_internal_work_uses_all_permits() -> None:
    shares = FairSemaphore(8)

    def fill() -> None:
        for _ in range(8):
            shares.acquire()
        with pytest.raises(NoFreeSlot):
            shares.acquire()

    # A context without a request.
    Context().run(fill)


def test_part_of_an_organization_gets_half_of_its_share(stack: ExitStack) -> None:
    shares = FairSemaphore(32)
    with client_network_scope(""), FairSemaphore.organization_scope("acme"):
        for part in ("one", "one", "one", "one", "two"):
            stack.callback(shares.acquire(part))
        with pytest.raises(NoFreeSlot):
            shares.acquire("one")
        stack.callback(shares.acquire("two"))


def test_single_organization_is_shared_by_networks(stack: ExitStack) -> None:
    shares = FairSemaphore(16, by_organization=False)
    assert acquired(shares, stack, network="192.0.2.0/24", organization="acme") == 4
    assert acquired(shares, stack, network="198.51.100.0/24", organization="acme") == 4


def test_released_permits_return_to_their_buckets(stack: ExitStack) -> None:
    shares = FairSemaphore(8)
    leaving: list[Callable[[], None]] = []
    with client_network_scope("192.0.2.0/24"):
        assign_organization("acme")
        for _ in range(50):
            leaving = [shares.acquire(), shares.acquire()]
            with pytest.raises(NoFreeSlot):
                shares.acquire()
            for leave in leaving:
                leave()
    assert shares._all.free == 8
    assert not shares._all._used_by_key
