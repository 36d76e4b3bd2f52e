"""Finds the lines of values in a JSON document."""

import json
import re
from collections.abc import Iterable, Iterator

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|\n|[^\s{}\[\],:"]+')
_PATH_SEGMENT = re.compile(r"\[\d+\]|[^.\[]+")


def find_line_numbers(text: str, paths: Iterable[str]) -> dict[str, int]:
    """The line of each path, such as ``organization.users[0].email``; for a missing value, of the object or list
    that lacks it. The text must be valid JSON.
    """
    segments = {path: tuple(_PATH_SEGMENT.findall(path)) for path in paths}
    needed = {parts[:length] for parts in segments.values() for length in range(len(parts) + 1)}
    found = {value_path: line for value_path, line in _iterate_positions(text) if value_path in needed}
    return {
        path: next((found[parts[:length]] for length in range(len(parts), -1, -1) if parts[:length] in found), 1)
        for path, parts in segments.items()
    }


def _iterate_positions(text: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """Each value's path and the line where it, or its name, begins."""
    line, value_path, counts = 1, [], []  # type: int, list[str], list[int | None]
    name: str | None = None
    for match in _TOKEN.finditer(text):
        piece = match[0]
        if piece == "\n":
            line += 1
        elif piece in "}]":
            counts.pop()
            if value_path:
                value_path.pop()
        elif piece in ",:":
            continue
        elif counts and counts[-1] is None and name is None:
            name, begins = json.loads(piece), line
        else:
            if counts and counts[-1] is not None:
                name, begins, counts[-1] = f"[{counts[-1]}]", line, counts[-1] + 1
            child_path = (*value_path, *(() if name is None else (name,)))
            yield child_path, line if name is None else begins
            if piece in "{[":
                if name is not None:
                    value_path.append(name)
                counts.append(None if piece == "{" else 0)
            name = None
