"""Reseal every value that is not sealed under the active master key."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from identity.crypto.sealing import Sealer, UnsealingError, sealing_key_id
from identity.domain.records import CORE_NAMESPACE
from identity.services import idempotency, one_time_links, outbox, records, upstream_providers, webhooks
from identity.services.container import Services
from identity.storage.stores.sealed_values import PrimaryKey, SealedValue, SealedValueKind

#: Small enough that waiting writers do not notice.
BATCH = 200
#: Rows that one read-only query examines.
_LOOK = 10 * BATCH

#: Reported instead of an id for a value that is not sealed at all.
UNKNOWN_KEY_ID = "?"


@dataclass
class RekeyingResult:
    """How many values were resealed, and how many could not be opened, by the id of their master key. ``signing_keys``
    are the ids of the signing keys among the latter."""

    count: int = 0
    unreadable: Counter[str] = field(default_factory=Counter)
    signing_keys: list[str] = field(default_factory=list)


def rekey(
    transaction: Callable[[], AbstractContextManager[Services]], sealer: Sealer, progress: Callable[[int], None]
) -> RekeyingResult:
    """Reseal everything, one transaction per batch. ``progress`` is called with the number of values resealed.
    Concurrent changes win. It can be interrupted and repeated: resealed values are skipped."""
    rekeying_result = RekeyingResult()
    with transaction() as services:
        rekeying_result.count, lost = services.signing_keys.rekey()
    rekeying_result.unreadable.update(_key_id(key.sealed_private_key) for key in lost)
    rekeying_result.signing_keys += [key.id for key in lost]
    progress(rekeying_result.count)
    for kind in SealedValueKind:
        for batch in _batches(transaction, sealer, kind):
            with transaction() as services:
                count = sum(_reseal_one(services, sealer, kind, value, rekeying_result) for value in batch)
            rekeying_result.count += count
            progress(count)
    return rekeying_result


def count_remaining(transaction: Callable[[], AbstractContextManager[Services]], sealer: Sealer) -> Counter[str]:
    """Number of values sealed under each master key other than the active one."""
    counted: Counter[str] = Counter()
    with transaction() as services:
        for signing_key in services.storage.signing_keys.list_all():
            key_id = _key_id(signing_key.sealed_private_key)
            if key_id != sealer.active_id:
                counted[key_id] += 1
    for kind in SealedValueKind:
        for batch in _batches(transaction, sealer, kind):
            counted.update(_key_id(value.sealed) for value in batch)
    return counted


def _batches(
    transaction: Callable[[], AbstractContextManager[Services]], sealer: Sealer, kind: SealedValueKind
) -> Iterator[list[SealedValue]]:
    after: PrimaryKey | None = None
    while True:
        with transaction() as services:
            sealed_value_batch = services.storage.sealed_values.list_with_other_prefix(
                kind, sealer.active_prefix, _LOOK, cursor=after
            )
        for start in range(0, len(sealed_value_batch.values), BATCH):
            yield sealed_value_batch.values[start : start + BATCH]
        after = sealed_value_batch.cursor
        if after is None:
            return


def _reseal_one(
    services: Services, sealer: Sealer, kind: SealedValueKind, value: SealedValue, rekeying_result: RekeyingResult
) -> int:
    context = sealing_context(kind, value.key)
    try:
        plain = sealer.open(value.sealed, associated_data=context)
    except UnsealingError:
        rekeying_result.unreadable[_key_id(value.sealed)] += 1
        return 0
    return services.storage.sealed_values.replace(kind, value, sealer.seal(plain, associated_data=context))


def sealing_context(kind: SealedValueKind, key: Sequence[Any]) -> str:
    """Sealing context of a value, by its row."""
    if kind is SealedValueKind.UPSTREAM_SECRETS:
        return upstream_providers.sealing_context(key[0])
    if kind is SealedValueKind.WEBHOOK_SECRETS:
        return webhooks.sealing_context(key[0])
    if kind is SealedValueKind.MESSAGES:
        return outbox.sealing_context(key[0])
    plugin, name, digest = key
    if plugin == CORE_NAMESPACE and name in tuple(one_time_links.OneTimeLinkKind):
        return one_time_links.sealing_context(digest)
    if plugin == CORE_NAMESPACE and name == idempotency.RECORD_KIND:
        return idempotency.sealing_context(digest)
    return records.sealing_context(plugin, name, digest)


def _key_id(sealed: bytes) -> str:
    try:
        return sealing_key_id(sealed)
    except UnsealingError:
        return UNKNOWN_KEY_ID
