"""The plugins of the service and their settings, as the ini file says: read-only."""

from collections.abc import Sequence

from markupsafe import Markup

from identity.domain.errors import NotFound
from identity.domain.messages import gettext_lazy as _
from identity.http import route_contexts
from identity.plugin_summaries import PluginSummary
from identity.plugins.console.console_page import CONSOLE_PATH, ConsolePage, path_value
from identity.plugins.console.lists import Cells, ResourceList, list_route
from identity.plugins.console.page_sections import Descriptions
from identity.plugins.console.plugin_settings import settings_section
from identity.plugins.console.resource_pages import DetailPage, ResourcePages
from identity.plugins.console.resource_types import INSTANCE, ResourceType
from identity.storage.paging import ResultPage

SECTION = "instance/plugins"
_LIST_PATH = f"{CONSOLE_PATH}/{SECTION}"

#: What plugins add, by the kinds of the plugin host.
_OFFER_LABELS = {
    "assertion verifier": _("Checks of assertions"),
    "client authentication": _("Client authentication"),
    "command": _("Commands"),
    "delivery": _("Deliveries of events"),
    "directory": _("Directories"),
    "endpoint": _("Endpoints"),
    "factor": _("Sign-in methods"),
    "grant type": _("Grant types"),
    "interaction": _("Steps of signing in"),
    "manager role": _("Manager roles"),
    "resolver of resource indicators": _("Resource indicators"),
    "response mode": _("Response modes"),
    "response type": _("Response types"),
    "scope": _("Scopes"),
    "sender constraint": _("Bound tokens"),
    "signer": _("Signers"),
    "source of authorization requests": _("Forms of authorization requests"),
    "source of client metadata": _("Clients known by their metadata"),
    "storage": _("Storage"),
    "way to sign in": _("Sign-in methods without a password"),
    "way to sign out": _("Ways to sign out"),
}


def _all(page: ConsolePage) -> tuple[PluginSummary, ...]:
    plugins: tuple[PluginSummary, ...] = page.request.registry.application.plugin_host.summarize_plugins()
    return plugins


def _rows(page: ConsolePage, plugins: Sequence[PluginSummary]) -> Sequence[Cells]:
    return [
        (
            page.template_macros.named(plugin.name, f"{_LIST_PATH}/{plugin.name}", plugin.description),
            Markup('<span class="nowrap">{}</span>').format(f"{plugin.distribution} {plugin.version}"),
            ", ".join(str(page.translate(_OFFER_LABELS.get(kind, kind))) for kind in plugin.offers),
            str(sum(not item.is_default for item in plugin.settings)) if plugin.settings else "",
        )
        for plugin in plugins
    ]


#: Not paged, because there are few.
PLUGINS = ResourceList[PluginSummary](
    path=f"/{SECTION}",
    permission="instance.read",
    section=SECTION,
    title=_("Plugins"),
    lead=_("What the service consists of, in the order of the ini file. It can only be changed there."),
    columns=(_("Plugin"), _("Package"), _("Adds"), _("Settings changed")),
    is_searchable=False,
    has_state_filter=False,
    fetch=lambda page, request: ResultPage(_all(page)),
    rows=_rows,
    empty_title=_("No plugins"),
    empty_text=_("The setting identity.plugins lists them."),
)


def _find(page: ConsolePage) -> PluginSummary:
    name = path_value(page, "plugin")
    for plugin in _all(page):
        if plugin.name == name:
            return plugin
    raise NotFound("plugin", name)


_PLUGIN = ResourceType[PluginSummary](
    model=PluginSummary,
    path=f"/{SECTION}/{{plugin}}",
    context=route_contexts.instance_context,
    permission_prefix="instance",
    section=SECTION,
    is_instance_page=INSTANCE.is_instance_page,
    parents=lambda page, plugin: [(PLUGINS.title, _LIST_PATH)],
    find=_find,
    find_path=lambda page, plugin: f"{_LIST_PATH}/{plugin.name}",
)


def _descriptions(page: DetailPage[PluginSummary], plugin: PluginSummary) -> Descriptions:
    return [
        (_("Package"), f"{plugin.distribution} {plugin.version}"),
        *((_OFFER_LABELS.get(kind, kind), page.render_role_names(names)) for kind, names in plugin.offers.items()),
        (_("Hooks"), page.render_role_names(plugin.hooks)),
    ]


_PAGES = ResourcePages(
    type=_PLUGIN,
    lead=lambda page, plugin: [plugin.description or _("Plugin")],
    badges=lambda page, plugin: (),
    descriptions=_descriptions,
    sections=lambda page, plugin: [settings_section(page, plugin)],
    is_editable=False,
)

ROUTES = (list_route(PLUGINS, INSTANCE), *_PAGES.routes())
