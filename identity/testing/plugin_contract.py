"""The contract that every plugin passes, as a pytest class to inherit from.

    from identity.testing.plugin_contract import PluginContract

    class TestPlugin(PluginContract):
        name = "redis"
        settings = {"url": "redis://localhost"}

The plugin must be installed: it is found by its entry point, as the service finds it.
"""

import inspect
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar

import pytest

from identity import hookspecs
from identity.plugin_host import ENTRY_POINT_GROUP, PluginError, PluginHost, installed_plugins, settings_class
from identity.settings import PLUGIN_PREFIX
from identity.settings_parser import InvalidSetting, describe_settings


class PluginContract:
    """Installed, constructed from ini strings, verified, documented, and strict about its settings."""

    #: Name of the entry point.
    name: ClassVar[str]
    #: Ini strings, without prefix, with which the plugin can be constructed.
    settings: ClassVar[Mapping[str, str]] = {}

    @pytest.fixture
    def plugin_class(self) -> Any:
        points = installed_plugins()
        assert self.name in points, f"no entry point {self.name} in the group {ENTRY_POINT_GROUP}"
        return points[self.name].load()

    @pytest.fixture
    def host(self) -> PluginHost:
        return PluginHost.load([self.name], {self.name: self.settings})

    def test_its_name_fits_into_an_ini_file(self) -> None:
        assert self.name.isidentifier()
        assert self.name.isascii()
        assert self.name == self.name.lower()

    def test_it_is_written_for_this_version_of_the_hooks(self, plugin_class: Any) -> None:
        assert plugin_class.hookspecs == hookspecs.HOOKSPEC_VERSION

    def test_plugin_is_loaded_and_verified(self, host: PluginHost) -> None:
        assert host.plugin_names == (self.name,)

    def test_it_implements_a_hook(self, host: PluginHost) -> None:
        assert host.hook_names(self.name) != []

    def test_instances_do_not_share_state(self, plugin_class: Any, host: PluginHost) -> None:
        plugin_host = PluginHost.load([self.name], {self.name: self.settings})
        for hook in host.hook_names(self.name):
            ours, core = (getattr(item.hook, hook).get_hookimpls()[0].plugin for item in (host, plugin_host))
            assert ours is not core

    def test_its_settings_are_a_frozen_dataclass(self, plugin_class: Any) -> None:
        assert is_dataclass(settings_class(plugin_class))
        assert getattr(settings_class(plugin_class), "__dataclass_params__").frozen  # noqa: B009 - typed as if it had none

    def test_an_unknown_setting_is_refused_by_its_full_key(self) -> None:
        with pytest.raises(InvalidSetting, match="is not known") as refusal:
            PluginHost.load([self.name], {self.name: {**self.settings, "no_such_setting": "1"}})
        assert refusal.value.key == f"{PLUGIN_PREFIX}{self.name}.no_such_setting"

    def test_without_settings_it_starts_or_names_the_one_that_is_missing(self, plugin_class: Any) -> None:
        required = {
            name for name, _, default, _ in describe_settings(settings_class(plugin_class)) if default == "required"
        }
        if not required:
            assert PluginHost.load([self.name], {}).plugin_names == (self.name,)
            return
        with pytest.raises(InvalidSetting) as refusal:
            PluginHost.load([self.name], {})
        assert refusal.value.key in {f"{PLUGIN_PREFIX}{self.name}.{name}" for name in required}

    def test_it_cannot_be_listed_twice(self) -> None:
        with pytest.raises(PluginError, match=self.name):
            PluginHost.load([self.name, self.name], {self.name: self.settings})

    def test_plugin_is_documented(self, plugin_class: Any, host: PluginHost) -> None:
        undocumented = [] if plugin_class.__doc__ else ["the class"]
        if not _own_docstring(settings_class(plugin_class)):
            undocumented.append("Settings")
        undocumented += [
            f"Settings.{field.name}" for field in fields(settings_class(plugin_class)) if not field.metadata.get("doc")
        ]
        undocumented += [hook for hook in host.hook_names(self.name) if not inspect.getdoc(getattr(plugin_class, hook))]
        assert undocumented == []


def _own_docstring(kind: type) -> bool:
    """False if the docstring is missing, or is the signature that ``dataclass`` generates."""
    return bool(kind.__doc__) and not str(kind.__doc__).startswith(f"{kind.__name__}(")
