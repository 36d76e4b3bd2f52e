"""The plugin manager_roles."""

from identity.testing.plugin_contract import PluginContract


class TestPlugin(PluginContract):
    name = "manager_roles"
