"""Plugins of a test: classes, and a service that has them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from identity import hookimpl
from identity.application import IdentityApplication
from identity.application_factory import create_application
from identity.plugin_host import PluginHost

Install = Callable[..., None]


@dataclass(frozen=True)
class NoSettings:
    """No settings."""


class Plain:
    """A plugin that implements nothing."""

    hookspecs = 1
    Settings = NoSettings

    def __init__(self, settings: object) -> None:
        self.settings = settings


def implementing(hook: str, function: Callable[..., object]) -> type:
    """A plugin class whose hook is this function."""
    return type("Implementing", (Plain,), {hook: hookimpl(function)})


def offering(hook: str, *values: object) -> type:
    """A plugin class whose hook returns these values."""
    return implementing(hook, lambda self: values)


def load(*names: str, **settings: Mapping[str, str]) -> PluginHost:
    return PluginHost.load(names, settings)


BASE: Mapping[str, str] = {
    "identity.issuer_url": "http://localhost:8080",
    "identity.development": "true",
    "identity.storage": "memory",
}


def assembled(install: Install, tmp_path: Any, **plugins: type) -> IdentityApplication:
    """A service with these plugins and a storage."""
    install(memory="identity.plugins.memory:MemoryPlugin", **plugins)
    return create_application(
        {**BASE, "identity.data": str(tmp_path), "identity.plugins": " ".join(("memory", *plugins))}
    )


#: Adds plugins of tests/house/sample_plugins to the installed ones; returns all plugins of a service, for its settings.
SamplePlugins = Callable[..., str]
