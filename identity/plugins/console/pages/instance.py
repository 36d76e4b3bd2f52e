"""The instance: its ids and addresses, what needs attention anywhere, who manages it, and its plugins."""

from collections.abc import Mapping

from markupsafe import Markup

from identity.domain.instance import Instance
from identity.domain.permissions import organization_resource
from identity.domain.words import say
from identity.http import targets
from identity.http.security import ANY_MANAGER
from identity.plugins.console.console_page import CONSOLE, ConsolePage
from identity.plugins.console.own_project import audience_scope
from identity.plugins.console.pages.managers import ManagerList
from identity.plugins.console.pages.overview import overview_sections
from identity.plugins.console.places import Place


class InstancePage(ConsolePage):
    """What programs have to know of it, for every manager; the rest for managers of the instance."""

    template = "console/instance.html"
    section = "instance"
    of_instance = True
    title = say("Instance administrators")

    def show(self) -> Mapping[str, object]:
        identity = self.request.registry.identity
        instance: Instance = self.context.value
        own = organization_resource(instance.organization_id)
        reads_own = self.services.access.may(self.principal, "organization.read", own)
        return {
            "instance": instance,
            "own_href": f"{CONSOLE}/organizations/{instance.organization_id}" if reads_own else "",
            "audience_scope": audience_scope(self),
            "settings": identity.settings,
            "overview": overview_sections(self, None),
            "managers": ManagerList.on(self).as_section(
                lead=say("Users who manage all organizations and the service itself.")
            ),
            "said": self.said,
            "plugins": Markup(", ").join(map(self.ui.code, identity.host.names)) if self.may("instance.read") else "",
        }


PLACES = (Place("/instance", InstancePage, ANY_MANAGER, targets.instance),)
