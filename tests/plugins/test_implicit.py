"""The plugin implicit; what it does is tested in tests/spec."""

from identity.testing.plugin_contract import PluginContract


class TestPlugin(PluginContract):
    name = "implicit"
