"""The plugin client_secret_basic."""

from identity.testing.plugin_contract import PluginContract


class TestPlugin(PluginContract):
    name = "client_secret_basic"
