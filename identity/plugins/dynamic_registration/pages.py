"""The console page with the initial access tokens of a project."""

from collections.abc import Mapping
from contextlib import suppress

from pyramid.config import Configurator
from pyramid.response import Response

from identity.api.entities import NotFound, Project
from identity.api.pages import Form, FormPage, RouteContext, SignedInPage, gettext_lazy
from identity.api.services import RecordNamespace
from identity.plugins.dynamic_registration.client_records import ClientRecords
from identity.plugins.dynamic_registration.endpoint import PATH
from identity.plugins.dynamic_registration.operations import AddInitialAccessToken
from identity.plugins.management.api import project_context

_WRITE = "application.write"
_REVOKED_FIELD = "revoked"
_PROJECTS = gettext_lazy("Projects")


def console_path(project_id: str) -> str:
    return f"/console/projects/{project_id}/initial-access-tokens"


class InitialAccessTokensPage(SignedInPage, FormPage):
    """Lists them, adds one, which is shown once, and revokes one."""

    context: RouteContext
    template = "dynamic_registration/tokens.html"
    fields = ("name", "uses", "days")
    home_path = "/console"
    namespace: RecordNamespace
    #: The token that this request created.
    secret = ""

    def common_variables(self) -> Mapping[str, object]:
        """In the frame of the console, if it is installed."""
        frame = self.renderer.console_frame
        return super().common_variables() if frame is None else frame(self.request, self.context, "projects")

    def initial_values(self) -> Mapping[str, str]:
        return {"name": "", "uses": "1", "days": "7"}

    def template_variables(self) -> Mapping[str, object]:
        services, resource, project = self.request.services, self.context.resource, self._project
        tokens = self._records.list_tokens(project.id)
        projects = f"/console/organizations/{project.organization_id}/projects"
        return {
            "trail": [
                (self.translator.gettext(_PROJECTS), projects),
                (project.name, f"/console/projects/{project.id}"),
            ],
            "registration_url": f"{self.request.registry.application.settings.base_url}{PATH}",
            "tokens": [(token, self._records.count_uses(token)) for token in tokens],
            "may_write": services.access_control.is_permitted(self.request.identity, _WRITE, resource),
            "secret": self.secret,
        }

    def submit(self, form: Form) -> Response:
        """Add a token, or revoke one. Raises DomainError."""
        self.request.services.access_control.require(self.request.identity, _WRITE, self.context.resource)
        revoked = form.text(_REVOKED_FIELD)
        if revoked:
            # It may be gone already.
            with suppress(NotFound):
                self._records.remove_token(self._project, revoked)
            return self.redirect(self.request.path)
        command = AddInitialAccessToken.decode({name: form.text(name) for name in self.fields})
        _, self.secret = self._records.add_token(self._project, name=command.name, uses=command.uses, days=command.days)
        return self.get()

    @property
    def _project(self) -> Project:
        project: Project = self.context.entity
        return project

    @property
    def _records(self) -> ClientRecords:
        return ClientRecords(self.request.services, self.namespace)


def add_registration_pages(config: Configurator, record_namespace: RecordNamespace) -> None:
    class Page(InitialAccessTokensPage):
        namespace = record_namespace

    config.include("identity.pages")
    config.add_page_templates("identity.plugins.dynamic_registration:templates")
    config.add_page(
        "console.projects.project.initial-access-tokens",
        console_path("{project}"),
        Page,
        permission="application.read",
        authenticate="session",
        factory=project_context,
    )
