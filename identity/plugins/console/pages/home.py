"""/console redirects to what the caller manages."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.domain.permissions import ManagerLevel, Resource
from identity.http import route_contexts
from identity.http.security_policy import ANY_MANAGER_PERMISSION
from identity.pages.signed_in_page import SignedInPage
from identity.plugins.console.console_page import CONSOLE_PATH
from identity.plugins.console.routes import ConsoleRoute

#: Start pages of managers of a single resource.
_LEVEL_PATHS = {
    ManagerLevel.PROJECT: "projects",
    ManagerLevel.PROJECT_GRANT: "project-grants",
    ManagerLevel.ORGANIZATION: "organizations",
}


class ConsoleHomePage(SignedInPage):
    """Redirects to the overview of the caller's own organization, else of another one, else to the single resource
    that they manage.
    """

    def template_variables(self) -> Mapping[str, object] | Response:
        access, principal = self.request.services.access_control, self.request.identity
        own_organization_id = self.subject.organization.id
        if "organization.read" in access.list_permissions(principal, Resource.INSTANCE):
            return self._overview(own_organization_id)
        managers = sorted(
            principal.manager_entries,
            key=lambda manager: (manager.organization_id != own_organization_id, manager.created_at),
        )
        for manager in managers:
            if manager.organization_id is None:
                continue
            resource = Resource.of_organization(manager.organization_id)
            if "organization.read" in access.list_permissions(principal, resource):
                return self._overview(manager.organization_id)
        for manager in managers:
            if manager.resource.level in _LEVEL_PATHS:
                return self.redirect(f"{CONSOLE_PATH}/{_LEVEL_PATHS[manager.resource.level]}/{manager.resource.id}")
        return self.redirect(f"{CONSOLE_PATH}/instance")

    def _overview(self, organization_id: str) -> Response:
        return self.redirect(f"{CONSOLE_PATH}/organizations/{organization_id}/overview")


ROUTES = (ConsoleRoute("", ConsoleHomePage, ANY_MANAGER_PERMISSION, route_contexts.instance_context),)
