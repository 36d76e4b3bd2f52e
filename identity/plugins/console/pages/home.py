"""/console: on to what one manages."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.domain.permissions import INSTANCE, Level, organization_resource
from identity.http import targets
from identity.http.security import ANY_MANAGER
from identity.pages.signed_in_page import SignedInPage
from identity.plugins.console.console_page import CONSOLE
from identity.plugins.console.places import Place

#: Where one gets to who manages a single thing.
_PAGES = {Level.PROJECT: "projects", Level.PROJECT_GRANT: "project-grants", Level.ORGANIZATION: "organizations"}


class Home(SignedInPage):
    """The own organization's overview first, then another's, then the single thing that one manages."""

    def show(self) -> Mapping[str, object] | Response:
        access, principal = self.request.services.access, self.request.identity
        own = self.subject.organization.id
        if "organization.read" in access.permissions(principal, INSTANCE):
            return self._overview(own)
        held = sorted(principal.held, key=lambda manager: (manager.organization_id != own, manager.created_at))
        for manager in held:
            if manager.organization_id is None:
                continue
            resource = organization_resource(manager.organization_id)
            if "organization.read" in access.permissions(principal, resource):
                return self._overview(manager.organization_id)
        for manager in held:
            if manager.resource.level in _PAGES:
                return self.redirect(f"{CONSOLE}/{_PAGES[manager.resource.level]}/{manager.resource.id}")
        return self.redirect(f"{CONSOLE}/instance")

    def _overview(self, organization_id: str) -> Response:
        return self.redirect(f"{CONSOLE}/organizations/{organization_id}/overview")


PLACES = (Place("", Home, ANY_MANAGER, targets.instance),)
