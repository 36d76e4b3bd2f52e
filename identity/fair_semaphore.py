"""Semaphores with fair shares: no client network and no organization can hold more than a quarter of the slots.

Each request counts for its client's network and, once known, for the organization that it concerns. Requests without
an organization, such as those with an unknown login name, share one bucket. Background work counts for neither; only
the size of the semaphore limits it.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from threading import Lock

#: Divides the slots into the share of a network, of an organization, and of browsers that an account knows.
_SHARE_DIVISOR = 4

#: The kind and the value that permits are counted for.
_Key = tuple[str, str]


class NoFreeSlot(Exception):
    """All slots are taken, or the network or organization has used up its share."""


@dataclass(frozen=True, slots=True)
class Requester:
    """Who a request counts for. With an empty ``network``, only the organization counts."""

    network: str = ""
    organization_id: str = ""
    known_browser: bool = False


_asker: ContextVar[Requester | None] = ContextVar("asker", default=None)


@contextmanager
def client_network_scope(network: str) -> Iterator[None]:
    """Runs a request of a client in this network; resets ``assign_organization`` at the end."""
    before = _asker.set(Requester(network))
    try:
        yield
    finally:
        _asker.reset(before)


def set_client_network(network: str) -> None:
    """Set the network until the current context ends, for requests that run in a context of their own."""
    _asker.set(Requester(network))


def assign_organization(organization_id: str) -> None:
    """Count the rest of the request for this organization."""
    asker = _asker.get()
    if asker is not None:
        _asker.set(replace(asker, organization_id=organization_id))


class FairSemaphore:
    """A semaphore with fair shares, and a quarter more slots for browsers that an account knows.

    Set ``by_organization`` to False where all requests serve one organization.
    """

    def __init__(self, slots: int, *, by_organization: bool = True) -> None:
        self._by_organization = by_organization
        self._known = _SlotPool(max(1, slots // _SHARE_DIVISOR))
        self._all = _SlotPool(slots)

    @staticmethod
    @contextmanager
    def organization_scope(organization_id: str, *, known_browser: bool = False) -> Iterator[None]:
        """Count the work in this block for the organization; an empty id counts it in the shared bucket."""
        asker = _asker.get()
        if asker is None:
            yield
            return
        before = _asker.set(replace(asker, organization_id=organization_id, known_browser=known_browser))
        try:
            yield
        finally:
            _asker.reset(before)

    @contextmanager
    def acquired(self, part: str = "") -> Iterator[None]:
        """Hold a slot inside the block. Raises NoFreeSlot."""
        leave = self.acquire(part)
        try:
            yield
        finally:
            leave()

    def acquire(self, subgroup: str = "") -> Callable[[], None]:
        """Take a slot; returns the function that releases it, from any thread. Raises NoFreeSlot.

        Each ``subgroup`` of an organization, such as one of its providers, gets at most half of the organization's
        share.
        """
        asker = _asker.get()
        keys = self._share_keys(asker, subgroup)
        pools = (self._known, self._all) if asker is not None and asker.known_browser else (self._all,)
        for pool in pools:
            if pool.acquire(keys):
                return lambda: pool.release(keys)
        raise NoFreeSlot

    def _share_keys(self, asker: Requester | None, part: str) -> tuple[_Key, ...]:
        keys = [("part", part)] if part else []
        if asker is not None and asker.network:
            keys.append(("network", asker.network))
        if asker is not None and self._by_organization:
            keys.append(("organization", asker.organization_id))
        return tuple(keys)


class _SlotPool:
    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._share = max(1, slots // _SHARE_DIVISOR)
        self._used_by_key: Counter[_Key] = Counter()
        self._used = 0
        self._lock = Lock()

    @property
    def free(self) -> int:
        return self._slots - self._used

    def acquire(self, keys: tuple[_Key, ...]) -> bool:
        with self._lock:
            free = self.free
            if free < 1 or any(self._used_by_key[key] >= self._max_slots(key, free) for key in keys):
                return False
            self._used += 1
            self._used_by_key.update(keys)
            return True

    def release(self, keys: tuple[_Key, ...]) -> None:
        with self._lock:
            self._used -= 1
            self._used_by_key.subtract(keys)
            for key in keys:
                if not self._used_by_key[key]:
                    del self._used_by_key[key]

    def _max_slots(self, key: _Key, free: int) -> int:
        """The number of slots this key may hold. It shrinks as slots get scarce, so that one is left for the next
        request.
        """
        share = max(1, self._share // 2) if key[0] == "part" else self._share
        return min(share, (free + 1) // 2)
