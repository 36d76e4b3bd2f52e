"""The plugin project_audience."""

from identity.testing.plugin_contract import PluginContract


class TestPlugin(PluginContract):
    name = "project_audience"
