"""The plugin organization_scopes; what it does is tested in tests/spec."""

from identity.testing.plugin_contract import PluginContract


class TestPlugin(PluginContract):
    name = "organization_scopes"
