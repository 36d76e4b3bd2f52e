"""/account/applications: applications with access to the account, and how to disconnect them."""

from collections.abc import Mapping

from markupsafe import Markup
from pyramid.response import Response

from identity.api.entities import NotFound
from identity.api.grants import AudienceScope, ConnectedApplication
from identity.api.pages import Form, FormPage, ScopeDescriptions
from identity.plugins.account.pages.account_page import APPLICATIONS_PATH, AccountPage

_DEVICE_FIELD = "device"


class _ConnectionsPage(AccountPage):
    section = APPLICATIONS_PATH

    def connections(self) -> tuple[ConnectedApplication, ...]:
        """The connections, last used first."""
        connected_applications: tuple[ConnectedApplication, ...] = (
            self.request.services.users.list_connected_applications(self.subject.user.id)
        )
        return connected_applications


class ConnectedApplicationsPage(_ConnectionsPage, FormPage):
    """One row per application, and below it each of its devices with a button that disconnects it alone."""

    template = "account/connected_applications.html"

    def template_variables(self) -> Mapping[str, object]:
        """Each connection with what the application receives, and whether it may act as a manager."""
        return {"rows": [(item, self._received(item), self._has_manager_access(item)) for item in self.connections()]}

    def submit(self, form: Form) -> Response:
        """Disconnect a device. Raises NotFound for a device of another user."""
        self.request.services.users.disconnect_device(self.subject, form.text(_DEVICE_FIELD))
        return self.redirect(self.path_with_flash(APPLICATIONS_PATH))

    def _received(self, connection: ConnectedApplication) -> Markup:
        project = connection.client.project.name
        described = ScopeDescriptions.describe(connection.scope, project, self.translator, self._namespaces)
        joined = Markup(", ").join(described)
        return joined[:1].upper() + joined[1:]

    def _has_manager_access(self, connection: ConnectedApplication) -> bool:
        instance = self.request.services.find_instance()
        own_id = "" if instance is None else instance.project_id
        return any(AudienceScope.find_project(scope, self._namespaces, own_id) == own_id for scope in connection.scope)

    @property
    def _namespaces(self) -> tuple[str, ...]:
        namespaces: tuple[str, ...] = self.request.registry.application.settings.urn_namespaces
        return namespaces


class DisconnectApplicationPage(_ConnectionsPage, FormPage):
    """Asks for confirmation. 404 for a client id that is not connected, whether or not it exists."""

    template = "account/disconnect_application.html"

    @property
    def connection(self) -> ConnectedApplication:
        client_id = self.request.matchdict["client_id"]
        connected_application = next(
            (item for item in self.connections() if item.client.application.path_id == client_id), None
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
