"""Values of ini files: read from strings by the type of a dataclass's fields, checked, and described.

Unknown keys, bad values and missing keys are refused by name.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, field, fields
from datetime import timedelta
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

Parsed = TypeVar("Parsed")
Check = Callable[[Any], object]

_SPAN = re.compile(r"([0-9]{1,8})\s*(s|m|h|d)?\Z")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


class BadSetting(Exception):
    """A setting that cannot be used; says which key and what it must be."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"{key}: {problem}")
        self.key = key
        self.problem = problem

    @property
    def each(self) -> "tuple[BadSetting, ...]":
        """Itself; of several told together, each."""
        return (self,)

    def below(self, prefix: str) -> "BadSetting":
        """The same where the key begins with this."""
        return BadSetting(prefix + self.key, self.problem)


class BadSettings(BadSetting):
    """Several that cannot be used, told together."""

    def __init__(self, problems: "Sequence[BadSetting]") -> None:
        super().__init__(problems[0].key, "; ".join([problems[0].problem, *map(str, problems[1:])]))
        self._problems = tuple(problems)

    @property
    def each(self) -> tuple[BadSetting, ...]:
        """Those that are told together."""
        return self._problems

    @staticmethod
    def of(problems: "Sequence[BadSetting]") -> BadSetting:
        """What to raise for them, of which there is at least one."""
        return problems[0] if len(problems) == 1 else BadSettings(problems)


class Gathered:
    """Settings that will not do, found one after the other, so that whoever mends them sees all at once."""

    def __init__(self) -> None:
        self.found: list[BadSetting] = []

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Go on behind the block that found one, which keeps it."""
        try:
            yield
        except BadSetting as problem:
            self.found += problem.each

    def tell(self, besides: Exception | None = None) -> None:
        """Raise BadSetting if any was found; ``besides`` is told with them, or raised where none was."""
        if besides is not None:
            if not self.found:
                raise besides
            self.found.append(BadSetting("identity.plugins", str(besides)))
        if self.found:
            raise BadSettings.of(self.found)


def setting(
    doc: str,
    *,
    default: Any = MISSING,
    at_least: Any = None,
    at_most: Any = None,
    check: Check | None = None,
    made: bool = False,
) -> Any:
    """A dataclass field with the sentence that the settings reference shows, and what fits into it.

    ``check`` is called with each value, of several words with each; what it raises a ValueError for is refused with the
    words of the error. ``made`` says that a file or folder need not be there: it is made.
    """
    metadata = {"doc": doc, "at_least": at_least, "at_most": at_most, "check": check, "made": made}
    return field(default=default, metadata=metadata) if default is not MISSING else field(metadata=metadata)


def span(doc: str, default: str, *, at_least: str = "1s", at_most: str | timedelta | None = None) -> Any:
    """The same for a span of time; spans as in ini files."""
    longest = _span(at_most) if isinstance(at_most, str) else at_most
    return setting(doc, default=_span(default), at_least=_span(at_least), at_most=longest)


def _span(text: str) -> timedelta:
    match = _SPAN.match(text)
    if match is None:
        raise ValueError("must be a span such as 3600, 90s, 10m, 12h or 30d")
    return timedelta(seconds=int(match[1]) * _SECONDS[match[2] or "s"])


def _boolean(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError("must be true or false")


def _integer(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise ValueError("must be a whole number")
    return int(text)


def _convert(kind: Any, text: str) -> Any:
    """Turn the text into the annotated type; ValueError says what it must be."""
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        inner = [option for option in get_args(kind) if option is not type(None)]
        return _convert(inner[0], text) if text else None
    if origin is tuple:
        return tuple(_convert(get_args(kind)[0], word) for word in text.split())
    if isinstance(kind, type) and issubclass(kind, Enum):
        if text not in {one.value for one in kind}:
            raise ValueError(f"must be one of {', '.join(str(one.value) for one in kind)}")
        return kind(text)
    if kind is bool:
        return _boolean(text)
    if kind is int:
        return _integer(text)
    if kind is timedelta:
        return _span(text)
    if kind is Path:
        return Path(text)
    if kind is str:
        return text
    raise TypeError(f"no reader for settings of type {kind}")


def _fitting(one: "Field[Any]", value: Any) -> Any:
    """The value; ValueError says what it must be."""
    at_least, at_most, check = (one.metadata.get(name) for name in ("at_least", "at_most", "check"))
    if at_most is not None and not at_least <= value <= at_most:
        raise ValueError(f"must be between {_shown(at_least)} and {_shown(at_most)}")
    if at_least is not None and value < at_least:
        raise ValueError(f"must be at least {_shown(at_least)}")
    if check is not None:
        for word in value if isinstance(value, tuple) else (value,):
            check(word)
    return value


def missing_paths(settings: Any, prefix: str) -> Iterator[tuple[str, Path]]:
    """Each file or folder that a setting of this dataclass names and that is not there, by the setting's full key."""
    for one in fields(settings):
        value = getattr(settings, one.name)
        paths = [path for path in (value if isinstance(value, tuple) else (value,)) if isinstance(path, Path)]
        for path in paths:
            if not one.metadata.get("made") and not path.exists():
                yield prefix + one.name, path


def _known(name: str, known: Iterable[str]) -> str:
    """What may be meant by a name that is not known."""
    # Nothing of it is needed where all is well.
    from difflib import get_close_matches

    near = get_close_matches(name, known, 1)
    meant = f"is {near[0]} meant? Known" if near else "known"
    return f"{meant} are: {', '.join(sorted(known)) or 'none'}"


def parse(kind: type[Parsed], values: Mapping[str, str], prefix: str) -> Parsed:
    """An instance of the dataclass ``kind`` from ini strings; ``values`` are keyed without the prefix.

    Raises BadSetting, naming the full key, for unknown keys, bad values and missing keys: for all there are.
    """
    hints = get_type_hints(kind)
    # A section of its own is filled in by whoever reads the file.
    known: dict[str, Field[Any]] = {one.name: one for one in fields(kind) if "section" not in one.metadata}  # type: ignore[arg-type]
    problems, missing = Gathered(), False
    for name in values:
        if name not in known:
            problems.found.append(BadSetting(prefix + name, f"is not known; {_known(name, known)}"))
    arguments = {}
    for name, one in known.items():
        if name in values:
            try:
                arguments[name] = _fitting(one, _convert(hints[name], values[name].strip()))
            except ValueError as problem:
                problems.found.append(BadSetting(prefix + name, str(problem)))
        if name not in arguments and one.default is MISSING and one.default_factory is MISSING:
            missing = True
            if name not in values:
                problems.found.append(BadSetting(prefix + name, "is missing"))
    if missing:
        problems.tell()
    # What does not fit by itself is left out here: the others may still not fit each other.
    try:
        made = kind(**arguments)
    except BadSetting as problem:
        problems.found += [one.below(prefix) for one in problem.each]
    problems.tell()
    return made


def describe(kind: type) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, default and meaning of each field, for the settings reference."""
    hints = get_type_hints(kind)
    for one in fields(kind):
        if "section" in one.metadata:
            continue
        default = "required" if one.default is MISSING else _shown(one.default)
        yield one.name, _type_name(hints[one.name]), default, one.metadata.get("doc", "") + _bounds(one)


def _bounds(one: "Field[Any]") -> str:
    """What fits, where that is not plain."""
    at_least, at_most = one.metadata.get("at_least"), one.metadata.get("at_most")
    shortest = "" if at_least in (None, 0, 1, timedelta(), timedelta(seconds=1)) else f" At least {_shown(at_least)}."
    return shortest + ("" if at_most is None else f" At most {_shown(at_most)}.")


def _type_name(kind: Any) -> str:
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return _type_name(get_args(kind)[0])
    if origin is tuple:
        return "words"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " | ".join(str(one.value) for one in kind)
    names = {str: "text", int: "number", bool: "true or false", timedelta: "span", Path: "file"}
    return names.get(kind, getattr(kind, "__name__", str(kind)))


def _shown(value: Any) -> str:
    if value is None or value in ("", ()):
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, timedelta):
        seconds = int(value.total_seconds())
        for unit in ("d", "h", "m"):
            if seconds and seconds % _SECONDS[unit] == 0:
                return f"{seconds // _SECONDS[unit]}{unit}"
        return f"{seconds}s"
    if isinstance(value, tuple):
        return " ".join(str(word) for word in value)
    return str(value)
