"""Contract of the sealed value store."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from identity.storage.contract import factories as make
from identity.storage.contract.factories import make_id
from identity.storage.contract.harness import ContractBase, StorageHarness, require_found
from identity.storage.stores.sealed_values import SealedValue, SealedValueKind

OLD, NEW = b"\x01\x01o", b"\x01\x01n"

#: How to make a row of each kind with this sealed value.
_FACTORIES: dict[SealedValueKind, Callable[[bytes], Any]] = {
    SealedValueKind.UPSTREAM_SECRETS: lambda sealed: make.upstream_provider(secret=sealed),
    SealedValueKind.WEBHOOK_SECRETS: lambda sealed: make.webhook(secret=sealed),
    SealedValueKind.MESSAGES: lambda sealed: make.outbox_message(sealed=sealed),
    SealedValueKind.RECORDS: lambda sealed: make.record(sealed=sealed),
}


class SealedValueContract(ContractBase):
    """Every row with a sealed value is found once, and changed only by a caller that read its current value."""

    @pytest.fixture(params=SealedValueKind)
    def kind(self, request: pytest.FixtureRequest) -> SealedValueKind:
        kind: SealedValueKind = request.param
        return kind

    def test_sealed_values_are_found_by_how_they_do_not_begin(self, on: StorageHarness, kind: SealedValueKind) -> None:
        rows = [_store_sealed(on, kind, item) for item in (OLD + b"\x00\xff1", NEW + b"2", b"", OLD + b"3", NEW[:-1])]
        sealed_value_batches = [on.read.sealed_values.list_with_other_prefix(kind, NEW, 2)]
        while sealed_value_batches[-1].cursor is not None:
            sealed_value_batches.append(
                on.read.sealed_values.list_with_other_prefix(kind, NEW, 2, cursor=sealed_value_batches[-1].cursor)
            )
            assert len(sealed_value_batches) <= len(rows), "there is no end"
        sealed_values = [value for sealed_value_batch in sealed_value_batches for value in sealed_value_batch.values]
        assert len(sealed_value_batches) == 3, "two rows are looked at each time, whatever they hold"
        assert sorted(value.sealed for value in sealed_values) == sorted([OLD + b"\x00\xff1", OLD + b"3", NEW[:-1]])
        assert [value.key for value in sealed_values] == sorted(value.key for value in sealed_values)
        keys = {(row.plugin, row.kind, row.key) if kind is SealedValueKind.RECORDS else (row.id,) for row in rows}
        assert {value.key for value in sealed_values} < keys

    def test_sealed_values_are_replaced_by_whoever_saw_them(self, on: StorageHarness, kind: SealedValueKind) -> None:
        _store_sealed(on, kind, OLD + b"1")
        _store_sealed(on, kind, OLD + b"1")
        first, second = on.read.sealed_values.list_with_other_prefix(kind, NEW, 10).values
        assert on.write.sealed_values.replace(kind, first, OLD + b"changed")
        assert not on.write.sealed_values.replace(kind, first, NEW + b"late")
        assert not on.write.sealed_values.replace(kind, replace(first, key=_unknown(first)), NEW)
        assert on.read.sealed_values.list_with_other_prefix(kind, NEW, 10).values == [
            replace(first, sealed=OLD + b"changed"),
            second,
        ]

    def test_sealed_values_of_records_are_replaced_without_a_new_version(self, on: StorageHarness) -> None:
        record = on.store_value(make.record(sealed=OLD))
        (value,) = on.read.sealed_values.list_with_other_prefix(SealedValueKind.RECORDS, NEW, 10).values
        assert on.write.sealed_values.replace(SealedValueKind.RECORDS, value, NEW)
        stored = require_found(on.read.records.find(record.plugin, record.kind, record.key))
        assert stored == replace(record, sealed=NEW)


def _store_sealed(on: StorageHarness, kind: SealedValueKind, sealed: bytes) -> Any:
    value = _FACTORIES[kind](sealed)
    if kind is SealedValueKind.UPSTREAM_SECRETS:
        on.store(make.organization(id=value.organization_id, primary_domain=f"{value.id}.example"))
    return on.store_value(value)


def _unknown(value: SealedValue) -> tuple[str | bytes, ...]:
    return (make_id(), *value.key[1:])
