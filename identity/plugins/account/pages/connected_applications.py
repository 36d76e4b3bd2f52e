"""/account/applications: applications with access to the account, and how to disconnect them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup
from pyramid.response import Response

from identity.api.entities import NotFound
from identity.api.grants import AudienceScope, ConnectedApplication
from identity.api.pages import Form, FormPage, ScopeDescriptions
from identity.plugins.account.pages.account_page import APPLICATIONS_PATH, AccountPage


@dataclass(frozen=True)
class ConnectedApplicationRow:
    client_id: str
    application: str
    organization: str
    scope_descriptions: Markup
    has_manager_access: bool
    has_offline_access: bool
    connected_at: datetime
    last_used_at: datetime


class _ConnectionsPage(AccountPage):
    section = APPLICATIONS_PATH

    def connections(self) -> tuple[ConnectedApplication, ...]:
        """The connections, last used first."""
        connected_applications: tuple[ConnectedApplication, ...] = (
            self.request.services.users.list_connected_applications(self.subject.user.id)
        )
        return connected_applications


class ConnectedApplicationsPage(_ConnectionsPage):
    template = "account/connected_applications.html"

    def template_variables(self) -> Mapping[str, object]:
        return {"rows": [self._row(connected_application) for connected_application in self.connections()]}

    def _row(self, connection: ConnectedApplication) -> ConnectedApplicationRow:
        client, instance = connection.client, self.request.services.find_instance()
        namespaces = self.request.registry.application.settings.urn_namespaces
        instance_project_id = "" if instance is None else instance.project_id
        return ConnectedApplicationRow(
            client_id=client.id,
            application=client.application.name,
            organization=client.organization.name,
            scope_descriptions=_capitalize(
                ScopeDescriptions.describe(connection.scope, client.project.name, self.translator, namespaces)
            ),
            has_manager_access=any(
                AudienceScope.find_project(scope, namespaces, instance_project_id) == instance_project_id
                for scope in connection.scope
            ),
            has_offline_access=connection.offline,
            connected_at=connection.since,
            last_used_at=connection.last_used_at,
        )


class DisconnectApplicationPage(_ConnectionsPage, FormPage):
    """Asks for confirmation. 404 for a client id that is not connected, whether or not it exists."""

    template = "account/disconnect_application.html"

    @property
    def connection(self) -> ConnectedApplication:
        client_id = self.request.matchdict["client_id"]
        connected_application = next(
            (connection for connection in self.connections() if connection.client.id == client_id), None
        )
        if connected_application is None:
            raise NotFound("application", client_id)
        return connected_application

    def template_variables(self) -> Mapping[str, object]:
        connection = self.connection
        return {"application": connection.client.application.name, "offline": connection.offline}

    def submit(self, form: Form) -> Response:
        self.request.services.users.disconnect_application(self.subject, self.connection.client.id)
        return self.redirect(self.path_with_flash(APPLICATIONS_PATH))


def _capitalize(parts: list[Markup]) -> Markup:
    """The parts capitalized, to stand alone."""
    joined = Markup(", ").join(parts)
    return joined[:1].upper() + joined[1:]
