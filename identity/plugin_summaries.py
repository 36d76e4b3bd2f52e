"""What the listed plugins are, what they add, and their settings, for operators. No value can contain a secret."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any
from urllib.parse import urlsplit

from identity.settings_parser import describe_settings, format_setting

#: Settings of other plugins can hold secrets themselves, though ours name files.
_SECRET_NAME = re.compile(r"(?:^|_)(?:secret|password|passphrase|token|key|credential|dsn)s?\Z")
_SECRET_TEXT = re.compile(r"(?i)(?:password|secret|token)\s*=")


@dataclass(frozen=True, slots=True)
class SettingSummary:
    """A setting by its whole name in the ini file. ``value`` is None if it is not rendered, because it is or may be a
    secret."""

    name: str
    value: str | None
    default: str
    is_default: bool
    description: str


@dataclass(frozen=True, slots=True)
class PluginSummary:
    """A plugin: what it adds by kind, such as "grant type", and the hooks that it implements."""

    name: str
    distribution: str
    version: str
    description: str
    offers: Mapping[str, Sequence[str]]
    hooks: Sequence[str]
    settings: Sequence[SettingSummary]


def summarize_settings(prefix: str, settings: Any) -> Iterator[SettingSummary]:
    """The settings with this prefix in the ini file, without those of subsections."""
    described = {name: (default, text) for name, _, default, text in describe_settings(type(settings))}
    for item in fields(settings):
        if item.name in described:
            value, (default, text) = getattr(settings, item.name), described[item.name]
            is_default = item.default is not MISSING and value == item.default
            yield SettingSummary(prefix + item.name, _shown_value(item.name, value), default, is_default, text)


def find_directory_plugin(plugins: Iterable[PluginSummary], directory: str, *, with_paths: bool) -> PluginSummary:
    """The plugin that offers the directory. Without ``with_paths``, names of files are left out: they are the
    operator's."""
    [plugin] = (item for item in plugins if directory in item.offers.get("directory", ()))
    if with_paths:
        return plugin
    settings = (replace(item, value=None) if item.name.endswith("_file") else item for item in plugin.settings)
    return replace(plugin, settings=tuple(settings))


def _shown_value(name: str, value: object) -> str | None:
    """The value as in the ini file. Of an address only scheme and host: the rest may be a secret."""
    if isinstance(value, tuple):
        rendered = [_shown_value(name, item) for item in value]
        return format_setting(()) if not rendered else None if None in rendered else " ".join(map(str, rendered))
    if isinstance(value, str):
        if value and (_SECRET_NAME.search(name) or _SECRET_TEXT.search(value)):
            return None
        if "://" in value:
            return _shown_address(value)
    return format_setting(value)


def _shown_address(text: str) -> str | None:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    hostname = f"[{host}]" if ":" in host else host
    rest = "/…" if parts.path not in ("", "/") or parts.query else parts.path
    return f"{parts.scheme}://{hostname}{'' if port is None else f':{port}'}{rest}"
