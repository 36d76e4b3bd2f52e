"""Plugins: what the service consists of, as the ini file says."""

from identity.plugin_summaries import PluginSummary
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import INSTANCE
from identity.plugins.management.representation import Representation


class SettingRepresentation(Representation):
    """A setting of the ini file. `value` is null where it is or may be a secret; of addresses, only scheme and host are
    returned."""

    name: str
    value: str | None
    default: str
    is_default: bool
    description: str


class PluginRepresentation(Representation):
    """A listed plugin: where it comes from, what it adds by kind, the hooks it implements, and its settings."""

    has_volatile_members = True

    name: str
    distribution: str
    version: str
    description: str
    offers: dict[str, list[str]]
    hooks: list[str]
    settings: list[SettingRepresentation]


def _represent(_call: object, plugin: PluginSummary) -> PluginRepresentation:
    settings = [SettingRepresentation.from_value(item) for item in plugin.settings]
    offers = {kind: list(names) for kind, names in plugin.offers.items()}
    return PluginRepresentation.from_value(plugin, settings=settings, offers=offers, hooks=list(plugin.hooks))


_PLUGINS = ApiResource[PluginSummary]("plugin", PluginRepresentation, _represent, permission_subject="instance")

OPERATIONS = (
    _PLUGINS.list(
        INSTANCE / "instance/plugins",
        "Lists the plugins of the service in the order of the ini file, with their settings.",
        lambda call: call.request.registry.application.plugin_host.summarize_plugins(),
        is_paged=False,
    ),
)
