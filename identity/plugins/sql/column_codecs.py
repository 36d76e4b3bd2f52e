"""How values of each type are stored: column type, and conversion in both directions.

Timestamps are seconds since the epoch: a third of the cost of DateTime columns, and without time zones. Sets and
tuples are JSON, or space-delimited where OAuth writes them so. Objects are JSON. So are fields that most rows leave at
their defaults: together in one column (``settings_codec``).
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from operator import attrgetter
from typing import Any

from sqlalchemy import BigInteger, Boolean, Dialect, Integer, LargeBinary, Text, TypeDecorator
from sqlalchemy.types import TypeEngine

from identity.domain.authentication import Proof
from identity.domain.entity import EntityField


class RawBoolean(Boolean):
    """A boolean that SQLite returns as the stored number, so that the reader detects other numbers."""

    cache_ok = True

    def result_processor(self, dialect: Dialect, coltype: object) -> None:
        """No conversion: the driver's value."""


class _LongText(TypeDecorator[str]):
    """MariaDB's type for unlimited text, loaded only for MariaDB: its dialect takes 1.5 MB."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[str]:
        """MariaDB's type, compared byte by byte."""
        from sqlalchemy.dialects.mysql import LONGTEXT

        return LONGTEXT(collation="utf8mb4_nopad_bin")


class _LongBytes(TypeDecorator[bytes]):
    """Like _LongText, for bytes."""

    impl = LargeBinary
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[bytes]:
        from sqlalchemy.dialects.mysql import LONGBLOB

        return LONGBLOB()


class _TextFromBytes(TypeDecorator[str]):
    """A text that is indexed as a whole: MariaDB reserves four bytes per character of a text, too many for its
    indexes."""

    impl = Text
    cache_ok = True

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> str | None:
        return None if value is None else value.decode()


#: Compared byte by byte, as in SQLite, including trailing spaces.
CodePointText = Text().with_variant(Text(collation="C"), "postgresql").with_variant(_LongText(), "mariadb")
#: Like CodePointText, for sort keys and searched text of up to 2000 bytes.
SortedText = Text().with_variant(Text(collation="C"), "postgresql").with_variant(_TextFromBytes(), "mariadb")
ByteString = LargeBinary().with_variant(_LongBytes(), "mariadb")
EpochSeconds = BigInteger


# The same few rows are read again and again, and these conversions are pure, so they are cached: that saves a third of
# the time of reading a client or a token.
@lru_cache(4096)
def datetime_from_seconds(stored: int) -> datetime:
    return datetime.fromtimestamp(stored, UTC)


def seconds_from_datetime(at: datetime) -> int:
    return int(at.timestamp())


@lru_cache(1024)
def json_list(values: tuple[str, ...]) -> str:
    return json.dumps(values, ensure_ascii=False)


def sorted_json_list(values: frozenset[str]) -> str:
    """A set as JSON, sorted so that equal sets are equal strings."""
    return json.dumps(sorted(values), ensure_ascii=False)


@lru_cache(1024)
def _parse_tuple(stored: str) -> tuple[str, ...]:
    return tuple(_parse_strings(stored))


@lru_cache(1024)
def parse_set(stored: str) -> frozenset[str]:
    """A set stored by ``sorted_json_list``. Raises ValueError."""
    return frozenset(_parse_strings(stored))


def _parse_strings(stored: str) -> list[str]:
    return _strings(json.loads(stored))


def _strings(values: Any) -> list[str]:
    if type(values) is not list or any(type(value) is not str for value in values):
        raise ValueError("not a list of texts")
    return values


@lru_cache(1024)
def split_values(stored: str) -> tuple[str, ...]:
    """Space-delimited values."""
    return tuple(stored.split(" ")) if stored else ()


def _parse_object(stored: str) -> dict[str, Any]:
    members = json.loads(stored)
    if type(members) is not dict:
        raise ValueError("not an object")
    return members


def _parse_string_map(stored: str) -> dict[str, str]:
    members = _parse_object(stored)
    if any(type(item) is not str for item in members.values()):
        raise ValueError("not texts")
    return members


def _serialize_object(members: Mapping[str, Any]) -> str:
    return json.dumps(dict(members), ensure_ascii=False)


@lru_cache(1024)
def parse_proofs(stored: str) -> tuple[Proof, ...]:
    """Proofs stored by ``serialize_proofs``. Raises ValueError, TypeError."""
    return tuple(
        Proof(str(factor), tuple(map(str, methods)), datetime_from_seconds(at))
        for factor, methods, at in json.loads(stored)
    )


def serialize_proofs(proofs: tuple[Proof, ...]) -> str:
    """JSON, each proof as factor, methods and time."""
    return json.dumps(
        [(proof.factor, proof.methods, seconds_from_datetime(proof.at)) for proof in proofs], ensure_ascii=False
    )


@dataclass(frozen=True, slots=True)
class ColumnCodec:
    """Column type, reader and writer of a type; None for no conversion."""

    column: Any
    read: Callable[[Any], Any] | None = None
    write: Callable[[Any], Any] | None = None


SPACE_DELIMITED = ColumnCodec(CodePointText, split_values, " ".join)
_CODECS: dict[Any, ColumnCodec] = {
    str: ColumnCodec(CodePointText),
    bytes: ColumnCodec(ByteString),
    bool: ColumnCodec(RawBoolean, {0: False, 1: True}.__getitem__),
    int: ColumnCodec(Integer),
    datetime: ColumnCodec(EpochSeconds, datetime_from_seconds, seconds_from_datetime),
    timedelta: ColumnCodec(
        BigInteger, lambda stored: timedelta(seconds=stored), lambda span: int(span.total_seconds())
    ),
    tuple[str, ...]: ColumnCodec(CodePointText, _parse_tuple, json_list),
    tuple[Proof, ...]: ColumnCodec(CodePointText, parse_proofs, serialize_proofs),
    frozenset[str]: ColumnCodec(CodePointText, parse_set, sorted_json_list),
    Mapping[str, str]: ColumnCodec(CodePointText, _parse_string_map, _serialize_object),
    Mapping[str, Any]: ColumnCodec(CodePointText, _parse_object, _serialize_object),
    Mapping[str, object]: ColumnCodec(CodePointText, _parse_object, _serialize_object),
}


def codec_for(kind: Any) -> ColumnCodec:
    """The codec of a field's type. Raises LookupError for an unsupported type."""
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return ColumnCodec(CodePointText, {item.value: item for item in kind}.__getitem__, attrgetter("value"))
    if is_dataclass(kind):
        return ColumnCodec(CodePointText, _reader_for(kind), lambda value: _serialize_object(_without_unset(value)))
    return _CODECS[kind]


def _reader_for(kind: Any) -> Callable[[str], Any]:
    @lru_cache(1024)
    def read(stored: str) -> Any:
        return _parse_nested(kind, _parse_object(stored))

    return read


def _parse_nested(kind: Any, members: Mapping[str, Any]) -> Any:
    """The value with the known members. Raises ValueError or TypeError for an invalid one."""
    inner = [field for field in fields(kind) if is_dataclass(field.type)]
    parts = {item.name: _parse_nested(item.type, dict(members.get(item.name, ()))) for item in inner}
    value = kind(**{**members, **parts})
    if any(type(getattr(value, field.name)) is not field.type for field in fields(kind)):
        raise ValueError("not what it should be")
    return value


def _without_unset(value: Any) -> dict[str, Any]:
    """The members that are set, by name."""
    members = ((field.name, getattr(value, field.name)) for field in fields(value))
    known = ((name, _without_unset(member) if is_dataclass(member) else member) for name, member in members)
    return {name: member for name, member in known if member}


def settings_codec(settings: Iterable[EntityField]) -> tuple[Callable[[str], tuple[Any, ...]], Callable[[Any], str]]:
    """Reader and writer of a JSON object with these fields of an entity, without those that have their defaults. The
    reader returns their values in order, and raises ValueError, TypeError or LookupError."""
    forms = [(item.name, item.default, *_json_form(item)) for item in settings]

    @lru_cache(1024)
    def read(stored: str) -> tuple[Any, ...]:
        members = _parse_object(stored)
        return tuple(from_json(members[name]) if name in members else default for name, default, from_json, _ in forms)

    def write(value: Any) -> str:
        known = ((name, getattr(value, name), default, to_json) for name, default, _, to_json in forms)
        return json.dumps(
            {name: to_json(member) for name, member, default, to_json in known if member != default}, ensure_ascii=False
        )

    return read, write


def _json_form(item: EntityField) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Reader and writer of a field's value in JSON. None can only be the default, which is not stored."""
    if item.nullable and item.default is not None:
        raise TypeError(f"the default of {item.name} must be None")
    if isinstance(item.type, type) and issubclass(item.type, StrEnum):
        return {member.value: member for member in item.type}.__getitem__, attrgetter("value")
    return _JSON_FORMS[item.type]


def _exactly(kind: type[Any]) -> Callable[[Any], Any]:
    def read(member: Any) -> Any:
        if type(member) is not kind:
            raise ValueError(f"not {kind.__name__}")
        return member

    return read


_read_number = _exactly(int)
_JSON_FORMS: dict[Any, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    str: (_exactly(str), str),
    bool: (_exactly(bool), bool),
    int: (_read_number, int),
    timedelta: (lambda stored: timedelta(seconds=_read_number(stored)), lambda span: int(span.total_seconds())),
    tuple[str, ...]: (lambda members: tuple(_strings(members)), list),
    frozenset[str]: (lambda members: frozenset(_strings(members)), sorted),
}
