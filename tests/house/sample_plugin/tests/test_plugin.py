"""The plugin in a service."""

from typing import ClassVar

from identity.api.testing import PluginContract


class TestPlugin(PluginContract):
    name = "sample"
    settings: ClassVar[dict[str, str]] = {"department": "Logistics"}
