"""Parses ini values by the field types of a dataclass, validates them and describes them.

Unknown keys, invalid values and missing keys are refused by name.
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
Validator = Callable[[Any], object]

_SPAN = re.compile(r"([0-9]{1,8})\s*(s|m|h|d)?\Z")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


class InvalidSetting(Exception):
    """A setting cannot be used; names the key and what its value must be."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"{key}: {problem}")
        self.key = key
        self.message = problem

    @property
    def errors(self) -> "tuple[InvalidSetting, ...]":
        """The error itself, or the errors that it combines."""
        return (self,)

    def with_prefix(self, prefix: str) -> "InvalidSetting":
        """A copy with a prefix before the key."""
        return InvalidSetting(prefix + self.key, self.message)


class InvalidSettings(InvalidSetting):
    """Several settings cannot be used."""

    def __init__(self, problems: "Sequence[InvalidSetting]") -> None:
        super().__init__(problems[0].key, "; ".join([problems[0].message, *map(str, problems[1:])]))
        self._problems = tuple(problems)

    @property
    def errors(self) -> tuple[InvalidSetting, ...]:
        return self._problems

    @staticmethod
    def combine(problems: "Sequence[InvalidSetting]") -> InvalidSetting:
        """One exception for all errors, of which there must be at least one."""
        return problems[0] if len(problems) == 1 else InvalidSettings(problems)


class SettingErrors:
    """Collects errors, so that all are reported at once."""

    def __init__(self) -> None:
        self.errors: list[InvalidSetting] = []

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Record an error raised in the block and continue after it."""
        try:
            yield
        except InvalidSetting as problem:
            self.errors += problem.errors

    def raise_if_any(self, plugin_error: Exception | None = None) -> None:
        """Raise InvalidSetting if there are errors; ``plugin_error`` is added to them, or raised if there are none."""
        if plugin_error is not None:
            if not self.errors:
                raise plugin_error
            self.errors.append(InvalidSetting("identity.plugins", str(plugin_error)))
        if self.errors:
            raise InvalidSettings.combine(self.errors)


def setting(
    description: str,
    *,
    default: Any = MISSING,
    minimum: Any = None,
    maximum: Any = None,
    validator: Validator | None = None,
    is_created: bool = False,
) -> Any:
    """A dataclass field with its description for the settings reference and its bounds.

    ``validator`` is called with the value, or with each element of a list; the text of its ValueError becomes the
    error message. ``is_created`` says that a file or folder is created if it is missing.
    """
    metadata = {"doc": description, "at_least": minimum, "at_most": maximum, "check": validator, "made": is_created}
    return field(default=default, metadata=metadata) if default is not MISSING else field(metadata=metadata)


def duration(doc: str, default: str, *, at_least: str = "1s", at_most: str | timedelta | None = None) -> Any:
    """A setting for a duration; bounds are written as in ini files."""
    longest = _parse_duration(at_most) if isinstance(at_most, str) else at_most
    return setting(doc, default=_parse_duration(default), minimum=_parse_duration(at_least), maximum=longest)


def _parse_duration(text: str) -> timedelta:
    match = _SPAN.match(text)
    if match is None:
        raise ValueError("must be a span such as 3600, 90s, 10m, 12h or 30d")
    return timedelta(seconds=int(match[1]) * _SECONDS[match[2] or "s"])


def _parse_boolean(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError("must be true or false")


def _parse_integer(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise ValueError("must be a whole number")
    return int(text)


def _convert(kind: Any, text: str) -> Any:
    """Convert the text to the annotated type. Raises ValueError with what it must be."""
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        inner = [option for option in get_args(kind) if option is not type(None)]
        return _convert(inner[0], text) if text else None
    if origin is tuple:
        return tuple(_convert(get_args(kind)[0], element) for element in text.split())
    if isinstance(kind, type) and issubclass(kind, Enum):
        if text not in {item.value for item in kind}:
            raise ValueError(f"must be one of {', '.join(str(item.value) for item in kind)}")
        return kind(text)
    if kind is bool:
        return _parse_boolean(text)
    if kind is int:
        return _parse_integer(text)
    if kind is timedelta:
        return _parse_duration(text)
    if kind is Path:
        return Path(text)
    if kind is str:
        return text
    raise TypeError(f"no reader for settings of type {kind}")


def _validate(field_: "Field[Any]", value: Any) -> Any:
    """Raises ValueError with what the value must be."""
    at_least, at_most, check = (field_.metadata.get(name) for name in ("at_least", "at_most", "check"))
    if at_most is not None and not at_least <= value <= at_most:
        raise ValueError(f"must be between {format_setting(at_least)} and {format_setting(at_most)}")
    if at_least is not None and value < at_least:
        raise ValueError(f"must be at least {format_setting(at_least)}")
    if check is not None:
        for element in value if isinstance(value, tuple) else (value,):
            check(element)
    return value


def missing_paths(settings: Any, prefix: str) -> Iterator[tuple[str, Path]]:
    """Full key and path of each file or folder in these settings that does not exist."""
    for item in fields(settings):
        value = getattr(settings, item.name)
        paths = [path for path in (value if isinstance(value, tuple) else (value,)) if isinstance(path, Path)]
        for path in paths:
            if not item.metadata.get("made") and not path.exists():
                yield prefix + item.name, path


def _suggestion(name: str, known: Iterable[str]) -> str:
    """A hint at the known name that is most similar."""
    # Imported only when there is an error.
    from difflib import get_close_matches

    near = get_close_matches(name, known, 1)
    meant = f"is {near[0]} meant? Known" if near else "known"
    return f"{meant} are: {', '.join(sorted(known)) or 'none'}"


def parse_settings(kind: type[Parsed], values: Mapping[str, str], prefix: str) -> Parsed:
    """An instance of the dataclass ``kind`` from ini strings; ``values`` are keyed without the prefix.

    Raises InvalidSetting with the full keys of all unknown keys, invalid values and missing keys.
    """
    hints = get_type_hints(kind)
    # The reader of the file fills in subsections.
    known: dict[str, Field[Any]] = {field.name: field for field in fields(kind) if "section" not in field.metadata}  # type: ignore[arg-type]
    problems, missing = SettingErrors(), False
    for name in values:
        if name not in known:
            problems.errors.append(InvalidSetting(prefix + name, f"is not known; {_suggestion(name, known)}"))
    arguments = {}
    for name, field_ in known.items():
        if name in values:
            try:
                arguments[name] = _validate(field_, _convert(hints[name], values[name].strip()))
            except ValueError as problem:
                problems.errors.append(InvalidSetting(prefix + name, str(problem)))
        if name not in arguments and field_.default is MISSING and field_.default_factory is MISSING:
            missing = True
            if name not in values:
                problems.errors.append(InvalidSetting(prefix + name, "is missing"))
    if missing:
        problems.raise_if_any()
    # Values that are invalid by themselves are left out here; the others may still contradict each other.
    try:
        parsed = kind(**arguments)
    except InvalidSetting as problem:
        problems.errors += [invalid_setting.with_prefix(prefix) for invalid_setting in problem.errors]
    problems.raise_if_any()
    return parsed


def describe_settings(kind: type) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, default and description of each field, for the settings reference."""
    hints = get_type_hints(kind)
    for item in fields(kind):
        if "section" in item.metadata:
            continue
        default = "required" if item.default is MISSING else format_setting(item.default)
        yield item.name, _type_name(hints[item.name]), default, item.metadata.get("doc", "") + _bounds_text(item)


def _bounds_text(field_: "Field[Any]") -> str:
    """The bounds, where the type does not imply them."""
    at_least, at_most = field_.metadata.get("at_least"), field_.metadata.get("at_most")
    shortest = (
        "" if at_least in (None, 0, 1, timedelta(), timedelta(seconds=1)) else f" At least {format_setting(at_least)}."
    )
    return shortest + ("" if at_most is None else f" At most {format_setting(at_most)}.")


def _type_name(kind: Any) -> str:
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return _type_name(get_args(kind)[0])
    if origin is tuple:
        return "words"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " | ".join(str(item.value) for item in kind)
    names = {str: "text", int: "number", bool: "true or false", timedelta: "span", Path: "file"}
    return names.get(kind, getattr(kind, "__name__", str(kind)))


def format_setting(value: Any) -> str:
    """The value as it is written in the ini file; "none" for an empty one."""
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
        return " ".join(str(element) for element in value)
    return str(value)
