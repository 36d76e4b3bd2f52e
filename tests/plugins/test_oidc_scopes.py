"""The plugin oidc_scopes."""

from identity.testing.plugin_contract import PluginContract


class TestPlugin(PluginContract):
    name = "oidc_scopes"
