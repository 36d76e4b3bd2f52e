"""JSON objects that are too large to be read in one piece, read as strictly as the others (RFC 8259, I-JSON)."""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from json import JSONDecodeError
from typing import IO, Any

import ijson

from identity.domain.words import say
from identity.http.errors import Malformed
from identity.http.json_object import (
    HOLDS_NUL,
    NESTED_TOO_DEEPLY,
    NO_OBJECT,
    NO_UTF8,
    NUMBER_TOO_LONG,
    given_twice,
    unreadable,
)

#: Takes the items of one list, which are then not kept: their number and what they are.
Taker = Callable[[int, Any], None]

_PIECE = 64 * 1024
_DEEPEST = 100
#: How much may come without anything in it being whole: one text or number.
_LONGEST = 2 * 2**20
#: How many names and values are kept; what takers take does not count.
_MOST_KEPT = 1_000_000
#: libyajl makes a question mark of half a character that is written like this.
_HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]")


def read_stream(
    file: IO[bytes], takers: Mapping[tuple[str, ...], Taker], told: Callable[[int], None] = lambda _: None
) -> dict[str, Any]:
    """The members of the JSON object that the file is, read from its start; it has to be seekable.

    The items of lists that stand at the places of ``takers`` go there, and leave an empty list. ``told`` hears how many
    bytes were read. Raises Malformed, as ``read_object`` does.
    """
    library: Any = ijson.get_backend("python") if _has_half_characters(file) else ijson
    building = _Building(takers)
    try:
        _read(library, file, building.take, told)
    except UnicodeError:
        raise Malformed(NO_UTF8) from None
    except (ijson.JSONError, JSONDecodeError) as problem:
        said = problem.args[0] if problem.args else ""
        if isinstance(said, UnicodeError) or "invalid bytes in UTF8" in str(said):
            raise Malformed(NO_UTF8) from None
        raise Malformed(_unreadable(library, file)) from None
    except ValueError:
        # Python reads no number of thousands of digits.
        raise Malformed(NUMBER_TOO_LONG) from None
    if not isinstance(building.root, dict):
        raise Malformed(NO_OBJECT)
    return building.root


def _has_half_characters(file: IO[bytes]) -> bool:
    file.seek(0)
    before = b""
    for piece in iter(partial(file.read, _PIECE), b""):
        if _HALF_CHARACTER.search(before + piece):
            return True
        before = piece[-4:]
    return False


def _read(
    library: Any, file: IO[bytes], take: Callable[[Iterable[tuple[str, Any]]], None], told: Callable[[int], None]
) -> None:
    file.seek(0)
    events = ijson.sendable_list()
    reader = library.basic_parse_coro(events, use_float=True)
    since = read = 0
    try:
        for piece in iter(partial(file.read, _PIECE), b""):
            reader.send(piece)
            since = 0 if events else since + len(piece)
            if since > _LONGEST:
                raise Malformed(say("A text or a number is too long."))
            take(events)
            del events[:]
            read += len(piece)
            told(read)
    except BaseException:
        _end(reader)
        raise
    reader.close()
    take(events)


def _end(reader: Any) -> None:
    """Let go of a reader that is not at the end; it would say so."""
    with suppress(ijson.JSONError, ValueError):
        reader.close()


class _Building:
    """Puts values together as they come."""

    def __init__(self, takers: Mapping[tuple[str, ...], Taker]) -> None:
        self.root: Any = None
        self._takers = takers
        # Of each object or list that has begun: itself, the name that came last, and the taker with its count.
        self._open: list[Any] = []
        self._names: list[Any] = []
        self._taking: list[list[Any] | None] = []
        self._taken_below = 0
        self._kept = 0

    def take(self, events: Iterable[tuple[str, Any]]) -> None:
        """Go on with these. Raises Malformed, UnicodeError."""
        for event, value in events:
            if event == "map_key":
                _check(value)
                if value in self._open[-1]:
                    raise Malformed(given_twice(value))
                self._open[-1][value] = None
                self._names[-1] = value
            elif event in ("start_map", "start_array"):
                self._begin([] if event == "start_array" else {})
            elif event in ("end_map", "end_array"):
                done = self._open.pop()
                self._names.pop()
                if self._taking.pop() is not None:
                    self._taken_below -= 1
                self._add(done)
            else:
                if event == "string":
                    _check(value)
                self._add(value)

    def _begin(self, new: Any) -> None:
        if len(self._open) >= _DEEPEST:
            raise Malformed(NESTED_TOO_DEEPLY)
        taker = self._takers.get(tuple(self._names)) if isinstance(new, list) else None
        self._open.append(new)
        self._names.append(None)
        self._taking.append(None if taker is None else [taker, 0])
        self._taken_below += taker is not None

    def _add(self, value: Any) -> None:
        if not self._taken_below:
            self._kept += 1
            if self._kept > _MOST_KEPT:
                raise Malformed(say("This holds more than can be read at once."))
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


def _check(text: str) -> None:
    if not text.isascii():
        text.encode("utf-8")
    if "\0" in text:
        raise Malformed(HOLDS_NUL)


def _unreadable(library: Any, file: IO[bytes]) -> str:
    """Where it cannot be read on: it is read once more to the piece, and once more in there byte by byte."""
    good = _good(library, file, _good(library, file, None))
    file.seek(0)
    before = file.read(good)
    last_line = before[before.rfind(b"\n") + 1 :]
    return unreadable(before.count(b"\n") + 1, len(last_line.decode("utf-8", "replace")) + 1)


def _good(library: Any, file: IO[bytes], exact_from: int | None) -> int:
    """How many bytes can be read: whole pieces, after ``exact_from`` single bytes."""
    file.seek(0)
    events = ijson.sendable_list()
    reader = library.basic_parse_coro(events, use_float=True)
    good = 0
    while piece := file.read(_PIECE if exact_from is None or good < exact_from else 1):
        try:
            reader.send(piece)
        except (ijson.JSONError, ValueError):
            break
        del events[:]
        good += len(piece)
    _end(reader)
    return good
