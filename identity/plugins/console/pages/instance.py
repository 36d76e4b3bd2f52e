"""The instance: ids and URLs, expiring credentials and refusals, managers and plugins."""

from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from identity import __version__
from identity.domain.instance import Instance
from identity.domain.messages import gettext_lazy as _
from identity.domain.permissions import Resource
from identity.http import route_contexts
from identity.http.security_policy import ANY_MANAGER_PERMISSION
from identity.pages.datetime_formatting import format_relative_time
from identity.plugins.console.audience_scopes import project_audience_scope
from identity.plugins.console.console_page import CONSOLE_PATH, ConsolePage
from identity.plugins.console.figure_cards import FigureCards
from identity.plugins.console.lists import list_section
from identity.plugins.console.pages.overview import AttentionItem, load_overview
from identity.plugins.console.resources.managers import MANAGERS
from identity.plugins.console.routes import ConsoleRoute


class InstancePage(ConsolePage):
    """Every manager sees what programs need; the rest is for managers of the instance."""

    template = "console/instance.html"
    section = "instance"
    is_instance_page = True
    title = _("Instance administrators")

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
            "attention": [*overview.attention, *self._waiting_items()] if figures is not None else (),
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

    def _health(self) -> Sequence[Markup]:
        """Short facts about the running service."""
        identity, t = self.request.registry.application, self.translator.gettext
        rotation = self.services.signing_keys.rotation_due_at()
        facts = [
            t(_("Version {version}"), version=__version__),
            t(_("Storage: {kind}"), kind=identity.backend.name),
        ]
        if rotation is not None:
            due = format_relative_time(rotation, self.services.now, self.translator)
            facts.append(t(_("Signing key rotates: {due}"), due=due))
        return facts


ROUTES = (ConsoleRoute("/instance", InstancePage, ANY_MANAGER_PERMISSION, route_contexts.instance_context),)
