"""The plugin public_client; what it does is tested in tests/spec."""

from identity.testing.plugin_contract import PluginContract


class TestPlugin(PluginContract):
    name = "public_client"
