"""Streaming JSON encoder, for lists that do not fit into memory."""

import json
from collections.abc import Iterator
from typing import Any


def iterencode(value: Any, indent: str = "") -> Iterator[str]:
    """The value as JSON in chunks; an iterator becomes a list whose items are consumed one by one. Values that contain
    an iterator are indented, all others are on one line."""
    if isinstance(value, Iterator):
        yield from _laid_out("[", "]", (("", item) for item in value), indent)
    elif _is_open(value):
        yield from _laid_out("{", "}", ((f"{_text(name)}: ", item) for name, item in value.items()), indent)
    else:
        yield _text(value)


def _laid_out(begin: str, end: str, parts: Iterator[tuple[str, Any]], indent: str) -> Iterator[str]:
    inside, between = indent + "  ", begin
    for name, member in parts:
        yield f"{between}\n{inside}{name}"
        yield from iterencode(member, inside)
        between = ","
    yield f"\n{indent}{end}" if between == "," else begin + end


def _is_open(value: Any) -> bool:
    return isinstance(value, dict) and any(isinstance(item, Iterator) or _is_open(item) for item in value.values())


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
