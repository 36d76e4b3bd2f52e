"""Plugin classes for tests, and a service that uses them."""

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
    pass


class Plain:
    """A plugin without hooks."""

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
    """A service with these plugins and in-memory storage."""
    install(memory="identity.plugins.memory:MemoryPlugin", **plugins)
    return create_application(
        {**BASE, "identity.data": str(tmp_path), "identity.plugins": " ".join(("memory", *plugins))}
    )


#: Installs plugins of tests/house/sample_plugins; returns the value of ``identity.plugins`` that lists all plugins.
SamplePlugins = Callable[..., str]
