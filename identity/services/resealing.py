"""Everything that is sealed under another master key than the active one, sealed anew under that."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from identity.crypto.sealing import Sealer, Unsealable, master_key_of
from identity.domain.records import CORE
from identity.services import idempotency, links, outbox, records, upstream_providers
from identity.services.bundle import Services
from identity.storage.stores.sealed import Key, Sealed, SealedValue

#: Short enough that who waits to write does not notice.
BATCH = 200
#: How many rows are looked at by one question, which reads alone.
_LOOK = 10 * BATCH

#: What is told in place of an id where a value is none that was sealed.
UNKNOWN = "?"


@dataclass
class Resealed:
    """How many values were sealed anew, and how many could not be opened, by the id of their master key.

    ``signing_keys`` are the ids of those signing keys that are among the latter.
    """

    count: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    signing_keys: list[str] = field(default_factory=list)


def reseal(
    transaction: Callable[[], AbstractContextManager[Services]], sealer: Sealer, done: Callable[[int], None]
) -> Resealed:
    """Go through everything, a batch in each transaction. ``done`` is told how many more are sealed anew.

    What somebody changes meanwhile is left to them. It can be stopped at any moment and done again: what is sealed
    anew already is passed over.
    """
    found = Resealed()
    with transaction() as services:
        found.count, lost = services.signing_keys.rewrap()
    found.lost.update(_key_id(key.sealed_private_key) for key in lost)
    found.signing_keys += [key.id for key in lost]
    done(found.count)
    for kind in Sealed:
        for batch in _batches(transaction, sealer, kind):
            with transaction() as services:
                count = sum(_reseal_one(services, sealer, kind, value, found) for value in batch)
            found.count += count
            done(count)
    return found


def left(transaction: Callable[[], AbstractContextManager[Services]], sealer: Sealer) -> Counter[str]:
    """How many values are sealed under each master key that is not the active one."""
    counted: Counter[str] = Counter()
    with transaction() as services:
        for signing_key in services.storage.signing_keys.all():
            key_id = _key_id(signing_key.sealed_private_key)
            if key_id != sealer.active_id:
                counted[key_id] += 1
    for kind in Sealed:
        for batch in _batches(transaction, sealer, kind):
            counted.update(_key_id(value.sealed) for value in batch)
    return counted


def _batches(
    transaction: Callable[[], AbstractContextManager[Services]], sealer: Sealer, kind: Sealed
) -> Iterator[list[SealedValue]]:
    after: Key | None = None
    while True:
        with transaction() as services:
            found = services.storage.sealed.others(kind, sealer.beginning, _LOOK, after=after)
        for start in range(0, len(found.values), BATCH):
            yield found.values[start : start + BATCH]
        after = found.last
        if after is None:
            return


def _reseal_one(services: Services, sealer: Sealer, kind: Sealed, value: SealedValue, found: Resealed) -> int:
    place = place_of(kind, value.key)
    try:
        plain = sealer.open(value.sealed, associated=place)
    except Unsealable:
        found.lost[_key_id(value.sealed)] += 1
        return 0
    return services.storage.sealed.replace(kind, value, sealer.seal(plain, associated=place))


def place_of(kind: Sealed, key: Sequence[Any]) -> str:
    """With what a value is sealed, by its row."""
    if kind is Sealed.UPSTREAM_SECRETS:
        return upstream_providers.place(key[0])
    if kind is Sealed.MESSAGES:
        return outbox.place(key[0])
    plugin, name, digest = key
    if plugin == CORE and name in tuple(links.CodeKind):
        return links.place(digest)
    if plugin == CORE and name == idempotency.KIND:
        return idempotency.place(digest)
    return records.place(plugin, name, digest)


def _key_id(sealed: bytes) -> str:
    try:
        return master_key_of(sealed)
    except Unsealable:
        return UNKNOWN
