"""The plugin sql; what its backend does is tested in tests/storage/sql."""

from typing import ClassVar

from identity.testing.plugin_contract import PluginContract


class TestPlugin(PluginContract):
    name = "sql"
    settings: ClassVar[dict[str, str]] = {"url": "sqlite:///identity.sqlite"}
