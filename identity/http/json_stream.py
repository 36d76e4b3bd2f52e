"""Streaming parser for large JSON objects, as strict as the one for small ones (RFC 8259, I-JSON)."""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from json import JSONDecodeError
from typing import IO, Any

import ijson

from identity.domain.messages import gettext_lazy
from identity.http.error_views import MalformedRequest
from identity.http.strict_json import (
    CONTAINS_NUL,
    NESTED_TOO_DEEPLY,
    NOT_AN_OBJECT,
    NOT_UTF8,
    NUMBER_TOO_LONG,
    duplicate_member_message,
    syntax_error_message,
)

#: Takes the items of one list with their indexes; they are not stored.
ItemHandler = Callable[[int, Any], None]

_CHUNK_SIZE = 64 * 1024
_MAX_DEPTH = 100
#: The maximum size of one text or number.
_MAX_PENDING_BYTES = 2 * 2**20
#: The maximum number of stored names and values, without those that handlers take.
_MAX_STORED_VALUES = 1_000_000
#: libyajl turns an escaped lone surrogate into a question mark.
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")


def parse_json_stream(
    file: IO[bytes],
    item_handlers: Mapping[tuple[str, ...], ItemHandler],
    on_progress: Callable[[int], None] = lambda _: None,
) -> dict[str, Any]:
    """The members of the JSON object in the file, read from its start; the file must be seekable. ``item_handlers`` get
    the items of the lists at their paths, which stay empty in the result. ``on_progress`` gets the number of bytes
    read. Raises MalformedRequest, as ``parse_json_object`` does."""
    library: Any = ijson.get_backend("python") if _has_half_characters(file) else ijson
    building = _ObjectBuilder(item_handlers)
    try:
        _feed_events(library, file, building.feed, on_progress)
    except UnicodeError:
        raise MalformedRequest(NOT_UTF8) from None
    except (ijson.JSONError, JSONDecodeError) as problem:
        message = problem.args[0] if problem.args else ""
        if isinstance(message, UnicodeError) or "invalid bytes in UTF8" in str(message):
            raise MalformedRequest(NOT_UTF8) from None
        raise MalformedRequest(_locate_syntax_error(library, file)) from None
    except ValueError:
        # Python does not parse numbers of thousands of digits.
        raise MalformedRequest(NUMBER_TOO_LONG) from None
    if not isinstance(building.root, dict):
        raise MalformedRequest(NOT_AN_OBJECT)
    return building.root


def _has_half_characters(file: IO[bytes]) -> bool:
    file.seek(0)
    before = b""
    for piece in iter(partial(file.read, _CHUNK_SIZE), b""):
        if _SURROGATE_ESCAPE.search(before + piece):
            return True
        before = piece[-4:]
    return False


def _feed_events(
    library: Any,
    file: IO[bytes],
    take: Callable[[Iterable[tuple[str, Any]]], None],
    report_progress: Callable[[int], None],
) -> None:
    file.seek(0)
    events = ijson.sendable_list()
    reader = library.basic_parse_coro(events, use_float=True)
    since = read = 0
    try:
        for piece in iter(partial(file.read, _CHUNK_SIZE), b""):
            reader.send(piece)
            since = 0 if events else since + len(piece)
            if since > _MAX_PENDING_BYTES:
                raise MalformedRequest(gettext_lazy("A text or a number is too long."))
            take(events)
            del events[:]
            read += len(piece)
            report_progress(read)
    except BaseException:
        _close_reader(reader)
        raise
    reader.close()
    take(events)


def _close_reader(reader: Any) -> None:
    """Close a reader before its end, which it would report."""
    with suppress(ijson.JSONError, ValueError):
        reader.close()


class _ObjectBuilder:
    """Builds values from parser events."""

    def __init__(self, takers: Mapping[tuple[str, ...], ItemHandler]) -> None:
        self.root: Any = None
        self._takers = takers
        # For each open object or list: itself, the last name, and the handler with its count.
        self._open: list[Any] = []
        self._names: list[Any] = []
        self._taking: list[list[Any] | None] = []
        self._taken_below = 0
        self._stored_count = 0

    def feed(self, events: Iterable[tuple[str, Any]]) -> None:
        """Process these events. Raises MalformedRequest, UnicodeError."""
        for event, value in events:
            if event == "map_key":
                _validate_string(value)
                if value in self._open[-1]:
                    raise MalformedRequest(duplicate_member_message(value))
                self._open[-1][value] = None
                self._names[-1] = value
            elif event in ("start_map", "start_array"):
                self._open_container([] if event == "start_array" else {})
            elif event in ("end_map", "end_array"):
                done = self._open.pop()
                self._names.pop()
                if self._taking.pop() is not None:
                    self._taken_below -= 1
                self._add(done)
            else:
                if event == "string":
                    _validate_string(value)
                self._add(value)

    def _open_container(self, new: Any) -> None:
        if len(self._open) >= _MAX_DEPTH:
            raise MalformedRequest(NESTED_TOO_DEEPLY)
        taker = self._takers.get(tuple(self._names)) if isinstance(new, list) else None
        self._open.append(new)
        self._names.append(None)
        self._taking.append(None if taker is None else [taker, 0])
        self._taken_below += taker is not None

    def _add(self, value: Any) -> None:
        if not self._taken_below:
            self._stored_count += 1
            if self._stored_count > _MAX_STORED_VALUES:
                raise MalformedRequest(gettext_lazy("This is larger than what can be read at once."))
        if not self._open:
            self.root = value
        elif self._taking[-1] is not None:
            taker, number = self._taking[-1]
            taker(number, value)
            self._taking[-1][1] += 1
        elif isinstance(self._open[-1], list):
            self._open[-1].append(value)
        else:
            self._open[-1][self._names[-1]] = value


def _validate_string(text: str) -> None:
    if not text.isascii():
        text.encode("utf-8")
    if "\0" in text:
        raise MalformedRequest(CONTAINS_NUL)


def _locate_syntax_error(library: Any, file: IO[bytes]) -> str:
    """Where parsing fails: the file is parsed again up to the failing chunk, and then byte by byte."""
    good = _parseable_bytes(library, file, _parseable_bytes(library, file, None))
    file.seek(0)
    before = file.read(good)
    last_line = before[before.rfind(b"\n") + 1 :]
    return syntax_error_message(before.count(b"\n") + 1, len(last_line.decode("utf-8", "replace")) + 1)


def _parseable_bytes(library: Any, file: IO[bytes], exact_from: int | None) -> int:
    """How many bytes can be parsed: whole chunks, after ``exact_from`` single bytes."""
    file.seek(0)
    events = ijson.sendable_list()
    reader = library.basic_parse_coro(events, use_float=True)
    good = 0
    while piece := file.read(_CHUNK_SIZE if exact_from is None or good < exact_from else 1):
        try:
            reader.send(piece)
        except (ijson.JSONError, ValueError):
            break
        del events[:]
        good += len(piece)
    _close_reader(reader)
    return good
