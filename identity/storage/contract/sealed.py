"""What is demanded of the store of what lies sealed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from identity.storage.contract.base import ContractBase, On, there
from identity.storage.contract.factories import (
    a_record,
    an_id,
    an_organization,
    an_outgoing_message,
    an_upstream_provider,
)
from identity.storage.stores.sealed import Sealed, SealedValue

OLD, NEW = b"\x01\x01o", b"\x01\x01n"

#: How a row of each kind is made that holds this.
_MADE: dict[Sealed, Callable[[bytes], Any]] = {
    Sealed.UPSTREAM_SECRETS: lambda sealed: an_upstream_provider(secret=sealed),
    Sealed.MESSAGES: lambda sealed: an_outgoing_message(sealed=sealed),
    Sealed.RECORDS: lambda sealed: a_record(sealed=sealed),
}


class SealedContract(ContractBase):
    """All rows that hold something sealed are found once, and changed by whoever saw what they hold."""

    @pytest.fixture(params=Sealed)
    def kind(self, request: pytest.FixtureRequest) -> Sealed:
        """Each kind."""
        kind: Sealed = request.param
        return kind

    def test_sealed_values_are_found_by_how_they_do_not_begin(self, on: On, kind: Sealed) -> None:
        rows = [_saved(on, kind, sealed) for sealed in (OLD + b"\x00\xff1", NEW + b"2", b"", OLD + b"3", NEW[:-1])]
        others = [on.read.sealed.others(kind, NEW, 2)]
        while others[-1].last is not None:
            others.append(on.read.sealed.others(kind, NEW, 2, after=others[-1].last))
            assert len(others) <= len(rows), "there is no end"
        found = [value for each in others for value in each.values]
        assert len(others) == 3, "two rows are looked at each time, whatever they hold"
        assert sorted(value.sealed for value in found) == sorted([OLD + b"\x00\xff1", OLD + b"3", NEW[:-1]])
        assert [value.key for value in found] == sorted(value.key for value in found)
        keys = {(row.plugin, row.kind, row.key) if kind is Sealed.RECORDS else (row.id,) for row in rows}
        assert {value.key for value in found} < keys

    def test_sealed_values_are_replaced_by_whoever_saw_them(self, on: On, kind: Sealed) -> None:
        _saved(on, kind, OLD + b"1")
        _saved(on, kind, OLD + b"1")
        first, second = on.read.sealed.others(kind, NEW, 10).values
        assert on.write.sealed.replace(kind, first, OLD + b"changed")
        assert not on.write.sealed.replace(kind, first, NEW + b"late")
        assert not on.write.sealed.replace(kind, replace(first, key=_unknown(first)), NEW)
        assert on.read.sealed.others(kind, NEW, 10).values == [replace(first, sealed=OLD + b"changed"), second]

    def test_sealed_values_of_records_are_replaced_without_a_new_version(self, on: On) -> None:
        record = on.saved(a_record(sealed=OLD))
        (value,) = on.read.sealed.others(Sealed.RECORDS, NEW, 10).values
        assert on.write.sealed.replace(Sealed.RECORDS, value, NEW)
        stored = there(on.read.records.find(record.plugin, record.kind, record.key))
        assert stored == replace(record, sealed=NEW)


def _saved(on: On, kind: Sealed, sealed: bytes) -> Any:
    made = _MADE[kind](sealed)
    if kind is Sealed.UPSTREAM_SECRETS:
        on.save(an_organization(id=made.organization_id, primary_domain=f"{made.id}.example"))
    return on.saved(made)


def _unknown(value: SealedValue) -> tuple[str | bytes, ...]:
    return (an_id(), *value.key[1:])
