"""The instance: ids and URLs, expiring credentials and refusals, managers and plugins."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from markupsafe import Markup

from identity import __version__
from identity.domain.instance import Instance
from identity.domain.messages import gettext_lazy as _
from identity.domain.messages import ngettext_lazy
from identity.domain.permissions import Resource
from identity.http import route_contexts
from identity.http.security_policy import ANY_MANAGER_PERMISSION
from identity.pages.datetime_formatting import format_relative_time
from identity.plugins.console.audience_scopes import project_audience_scope
from identity.plugins.console.console_page import CONSOLE_PATH, ConsolePage
from identity.plugins.console.figure_cards import FigureCards
from identity.plugins.console.lists import list_section
from identity.plugins.console.page_sections import TableSection
from identity.plugins.console.pages.overview import AttentionItem, load_overview
from identity.plugins.console.resources.managers import MANAGERS
from identity.plugins.console.routes import ConsoleRoute
from identity.system_monitor import SystemReport


class InstancePage(ConsolePage):
    """Every manager sees what programs need; the rest is for managers of the instance."""

    template = "console/instance.html"
    section = "instance"
    is_instance_page = True
    title = _("Instance overview")

    def template_variables(self) -> Mapping[str, object]:
        identity = self.request.registry.application
        instance: Instance = self.context.entity
        resource = Resource.of_organization(instance.organization_id)
        reads_own = self.services.access_control.is_permitted(self.principal, "organization.read", resource)
        overview = load_overview(self, None)
        figures = FigureCards(self, None, {}) if self.has_permission("instance.read") else None
        return {
            "instance": instance,
            "own_href": f"{CONSOLE_PATH}/organizations/{instance.organization_id}" if reads_own else "",
            "audience_scope": project_audience_scope(self),
            "settings": identity.settings,
            "figures": None if figures is None else figures.template_variables(),
            "attention": [*overview.attention, *self._problem_items(), *self._waiting_items()]
            if figures is not None
            else (),
            "checks": self._checks_section() if figures is not None else None,
            "health": self._health() if figures is not None else (),
            "overview": overview.sections,
            "managers": list_section(
                self,
                MANAGERS,
                f"{CONSOLE_PATH}/instance",
                lead=_("Users who manage all organizations and the service itself."),
            ),
            "said": self.translate,
            "plugins": Markup(", ").join(map(self.template_macros.code, identity.plugin_host.plugin_names))
            if self.has_permission("instance.read")
            else "",
        }

    def _waiting_items(self) -> Iterator[AttentionItem]:
        """Senders and jobs whose oldest item has waited too long."""
        identity, t = self.request.registry.application, self.translator.gettext
        for name, age in identity.background_monitor.oldest_pending().items():
            if age > identity.settings.job_alarm_age:
                text = t(_("Background work waits: {name}"), name=name)
                since = format_relative_time(self.services.now - age, self.services.now, self.translator)
                yield AttentionItem("warn", text, "#health", t(_("Oldest item: {since}"), since=since))

    def _checks_section(self) -> TableSection:
        """What ``identity check`` said in this process: what to fix. The sentences are for operators, in English."""
        report: SystemReport | None = self.request.registry.application.system_monitor.latest()
        problems = {} if report is None else {name: text for name, text in report.problems.items() if text}
        return TableSection(
            "checks",
            _("Checks"),
            "" if report is None else self.translator.gettext("Read {when}.", when=self._ago(report.checked_at)),
            columns=(_("Check"), _("What to fix")),
            rows=[(name, Markup('<span lang="en">{}</span>').format(text)) for name, text in problems.items()],
            empty=_("The checks are running. Reload the page in a moment.")
            if report is None
            else ngettext_lazy("{n} check passed.", "All {n} checks passed.", len(report.problems)),
        )

    def _problem_items(self) -> Iterator[AttentionItem]:
        report: SystemReport | None = self.request.registry.application.system_monitor.latest()
        for name, problem in () if report is None else report.problems.items():
            if problem is not None:
                text = self.translator.gettext("The check “{name}” failed", name=name)
                yield AttentionItem("warn", text, "#checks")

    def _ago(self, moment: datetime) -> str:
        return str(format_relative_time(moment, self.services.now, self.translator))

    def _health(self) -> Sequence[Markup]:
        """Short facts about the running service."""
        identity, t = self.request.registry.application, self.translator.gettext
        report = identity.system_monitor.latest()
        database = None if report is None else report.database
        rotation = self.services.signing_keys.rotation_due_at()
        facts = [
            t(_("Version {version}"), version=__version__),
            t(_("Database: {name}"), name=identity.backend.name)
            if database is None
            else t(_("Database: {name}"), name=f"{database.product} {database.version}".strip()),
        ]
        if database is not None and database.size is not None:
            facts.append(t(_("Size: {size} MB"), size=f"{database.size / 1_000_000:.1f}"))
        if rotation is not None:
            due = format_relative_time(rotation, self.services.now, self.translator)
            facts.append(t(_("Signing key rotates: {due}"), due=due))
        return facts


ROUTES = (ConsoleRoute("/instance", InstancePage, ANY_MANAGER_PERMISSION, route_contexts.instance_context),)
