"""The instance: ids and URLs, expiring credentials and refusals, managers and plugins."""

from collections.abc import Mapping

from markupsafe import Markup

from identity.domain.instance import Instance
from identity.domain.messages import gettext_lazy as _
from identity.domain.permissions import Resource
from identity.http import route_contexts
from identity.http.security_policy import ANY_MANAGER_PERMISSION
from identity.plugins.console.audience_scopes import project_audience_scope
from identity.plugins.console.console_page import CONSOLE_PATH, ConsolePage
from identity.plugins.console.lists import list_section
from identity.plugins.console.pages.overview import overview_sections
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
        return {
            "instance": instance,
            "own_href": f"{CONSOLE_PATH}/organizations/{instance.organization_id}" if reads_own else "",
            "audience_scope": project_audience_scope(self),
            "settings": identity.settings,
            "overview": overview_sections(self, None),
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


ROUTES = (ConsoleRoute("/instance", InstancePage, ANY_MANAGER_PERMISSION, route_contexts.instance_context),)
