"""The plugin client_secret_post; what it does is tested in tests/spec."""

from identity.testing.plugin_contract import PluginContract


class TestPlugin(PluginContract):
    name = "client_secret_post"
