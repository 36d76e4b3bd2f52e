"""The settings of a plugin, as the ini file says, as a section of a page."""

from identity.domain.messages import gettext_lazy as _
from identity.plugin_summaries import PluginSummary, SettingSummary
from identity.plugins.console.badges import Badge
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.lists import Cells
from identity.plugins.console.page_sections import TableSection


def _setting_row(page: ConsolePage, setting: SettingSummary) -> Cells:
    value = page.render_placeholder(_("Set, not shown")) if setting.value is None else setting.value
    origin = _("Default") if setting.is_default else _("Set in the ini file")
    return (
        page.template_macros.named(page.template_macros.code(setting.name), "", setting.description.replace("``", "")),
        value,
        page.render_badge(Badge(page.translator.gettext(origin), "" if setting.is_default else "success")),
        setting.default,
    )


def settings_section(page: ConsolePage, plugin: PluginSummary) -> TableSection:
    return TableSection(
        "settings",
        _("Settings"),
        _("Their current values. Secrets are not shown; of addresses only the host."),
        columns=(_("Setting"), _("Value"), _("Origin"), _("Default")),
        rows=[_setting_row(page, setting) for setting in plugin.settings],
        empty=_("This plugin has no settings."),
    )
