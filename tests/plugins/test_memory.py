"""The plugin memory."""

from identity.testing.plugin_contract import PluginContract


class TestPlugin(PluginContract):
    name = "memory"
