"""The plugin console. Its pages are tested in tests/console."""

from identity.testing.plugin_contract import PluginContract


class TestPlugin(PluginContract):
    name = "console"
