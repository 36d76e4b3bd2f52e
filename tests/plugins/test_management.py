"""The plugin management."""

from identity.testing.plugin_contract import PluginContract


class TestPlugin(PluginContract):
    name = "management"
