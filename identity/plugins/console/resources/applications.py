"""Applications of a project: list, detail page, deactivate and delete."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from markupsafe import Markup

from identity.domain.applications import Application, ApplicationType
from identity.domain.entity import EntityField
from identity.domain.messages import gettext_lazy
from identity.http import route_contexts
from identity.plugins.console.action_page import REACTIVATION_HINT, DeactivatePage, DeletePage, ReactivatePage
from identity.plugins.console.badges import Badge, secrets_badge, state_badge
from identity.plugins.console.client_secrets import client_secret_routes, client_secret_section
from identity.plugins.console.console_page import CONSOLE_PATH
from identity.plugins.console.detail_page import ResourceDetailPage
from identity.plugins.console.fields.applications import APPLICATION_FIELDS, APPLICATION_TYPE_OPTIONS
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.page_sections import (
    DescriptionListSection,
    Descriptions,
    NoteSection,
    PageSection,
    TableSection,
)
from identity.plugins.console.resource_page import ApplicationResourcePage, ProjectResourcePage, resource_routes
from identity.plugins.console.resources.branding import branding_section
from identity.plugins.console.routes import ConsoleRoute
from identity.provider.endpoints import metadata
from identity.storage.paging import PageRequest, ResultPage

#: URLs that applications are configured with, by their names in the discovery document.
_ENDPOINT_LABELS = {
    "authorization_endpoint": gettext_lazy("Authorization endpoint"),
    "token_endpoint": gettext_lazy("Token endpoint"),
    "userinfo_endpoint": gettext_lazy("User info endpoint"),
    "introspection_endpoint": gettext_lazy("Introspection endpoint"),
    "revocation_endpoint": gettext_lazy("Revocation endpoint"),
    "end_session_endpoint": gettext_lazy("End of session endpoint"),
    "jwks_uri": gettext_lazy("Signing keys"),
}


class ApplicationListPage(ProjectResourcePage, ListPage):
    back_path_suffix = "/applications"

    title = gettext_lazy("Applications")
    lead = gettext_lazy("Programs that people sign in to, and APIs that check tokens.")
    columns = (
        gettext_lazy("Name"),
        gettext_lazy("Type"),
        gettext_lazy("Client id"),
        gettext_lazy("Secret"),
        gettext_lazy("State"),
    )
    sort_orders = (("name", gettext_lazy("Name")),)
    empty_title = gettext_lazy("No applications yet")
    empty_text = gettext_lazy(
        "Register the first application. It gets a client id and, where it can keep one, a secret."
    )
    read_permission, create_permission, entity_label = (
        "application.read",
        "application.write",
        gettext_lazy("application"),
    )
    section_id, all_link_label, is_primary_task = "applications", gettext_lazy("All applications …"), True

    def fetch_page(self, page_request: PageRequest) -> ResultPage[Any]:
        return self.services.storage.applications.page(self.entity.id, page_request)

    def build_rows(self, found: Sequence[Application]) -> Sequence[Cells]:
        """With their secrets in one badge; public clients have none."""
        counts = self.services.storage.applications.count_secrets([application.id for application in found])
        return [
            (
                self.template_macros.named(application.name, f"{CONSOLE_PATH}/applications/{application.id}"),
                self.translate(APPLICATION_TYPE_OPTIONS[application.type].label),
                self.template_macros.code(application.id),
                self.render_placeholder(gettext_lazy("None"))
                if application.is_public
                else self.render_badge(secrets_badge(counts.get(application.id, 0), self.translator)),
                self.render_badge(state_badge(application.active, self.translator)),
            )
            for application in found
        ]


_ACTIONS = (
    DeactivatePage.for_resource(
        ApplicationResourcePage,
        title=gettext_lazy("Deactivate the application “{name}”?"),
        description=gettext_lazy("Nobody signs in to it any more. You can reactivate it later."),
        impact=(gettext_lazy("Nobody signs in to it, and it gets and checks no tokens."), REACTIVATION_HINT),
        submit_label=gettext_lazy("Deactivate application"),
    ),
    ReactivatePage.for_resource(
        ApplicationResourcePage,
        title=gettext_lazy("Reactivate the application “{name}”?"),
        description=gettext_lazy("People sign in to it again."),
        impact=(gettext_lazy("People sign in to it again, and its secrets work again."),),
        submit_label=gettext_lazy("Reactivate application"),
    ),
    DeletePage.for_resource(
        ApplicationResourcePage,
        title=gettext_lazy("Delete the application “{name}”?"),
        description=gettext_lazy("Removes the application and its secrets for ever."),
        undone=gettext_lazy("This cannot be undone. Its client id never works again."),
        submit_label=gettext_lazy("Delete application"),
    ),
)


class ApplicationDetailPage(ApplicationResourcePage, ResourceDetailPage):
    """The application's settings, and the service's URLs to configure it with."""

    actions = _ACTIONS
    hidden_fields = ("name", "redirect_uris", "post_logout_redirect_uris", "development")

    @property
    def has_sign_in(self) -> bool:
        return self.entity.type is not ApplicationType.API

    @property
    def lead(self) -> Sequence[str]:
        return [APPLICATION_TYPE_OPTIONS[self.entity.type].label, self.project.name]

    @property
    def badges(self) -> Sequence[Badge]:
        development = [Badge(self.translator.gettext("Development"), "warning")] if self.entity.development else []
        return [*super().badges, *development]

    @property
    def descriptions(self) -> Descriptions:
        application = self.entity
        addresses = [
            (gettext_lazy("Redirect URIs"), self._format_uris(application.redirect_uris)),
            (gettext_lazy("Post-logout redirect URIs"), self._format_uris(application.post_logout_redirect_uris)),
        ]
        return [
            (gettext_lazy("Client id"), self.template_macros.identifier(application.id)),
            *(addresses if self.has_sign_in else []),
            (gettext_lazy("Created"), self.template_macros.when(application.created_at, relative=True)),
        ]

    @property
    def sections(self) -> Sequence[PageSection | NoteSection | None]:
        settings = DescriptionListSection(
            "settings", gettext_lazy("Settings"), facts=self.field_descriptions(self.entity, APPLICATION_FIELDS)
        )
        looks = branding_section(self) if self.has_sign_in else None
        return [self._client_secret_section(), self._endpoints(), settings, looks]

    def _client_secret_section(self) -> TableSection | None:
        lead = gettext_lazy(
            "Two can be live, so that one is replaced without a gap: make a new one, use it, end the old one."
        )
        empty = gettext_lazy("No client secret: the application gets no tokens until it has one.")
        if self.entity.is_public:
            return None
        return client_secret_section(self, "secrets", gettext_lazy("Client secrets"), lead, empty=empty, first=True)

    def _endpoints(self) -> DescriptionListSection:
        identity = self.request.registry.application
        document, issuer = (
            metadata.discovery_document_members(identity.protocol_registry, identity.settings),
            identity.settings.issuer_url,
        )
        addresses = [(label, document[name]) for name, label in _ENDPOINT_LABELS.items() if name in document]
        known = [
            (gettext_lazy("Issuer"), issuer),
            (gettext_lazy("Discovery document"), issuer + metadata.ENDPOINT.path),
            *addresses,
        ]
        return DescriptionListSection(
            "endpoints",
            gettext_lazy("What the application has to know of us"),
            gettext_lazy("Most libraries need the issuer alone, and read the rest from the discovery document."),
            facts=[(label, self.template_macros.identifier(address)) for label, address in known],
        )

    def format_value(self, setting: EntityField, value: Any) -> object:
        if setting.type is timedelta:
            return self._format_lifetime(setting.name)
        return self.template_macros.code(value) if setting.type is str else super().format_value(setting, value)

    def _format_lifetime(self, name: str) -> Markup:
        configured: timedelta | None = getattr(self.entity, name)
        span = configured or getattr(self.request.registry.application.settings, name)
        text = self.translator.ngettext("{n} minute", "{n} minutes", span // timedelta(minutes=1))
        return text if configured else text + " " + self.render_placeholder(gettext_lazy("as everywhere"))

    def _format_uris(self, addresses: Sequence[str]) -> Markup:
        lines = [Markup("<div>{}</div>").format(self.template_macros.identifier(address)) for address in addresses]
        return Markup().join(lines) or self.render_placeholder(gettext_lazy("None"))


ROUTES = (
    ConsoleRoute(
        "/projects/{project}/applications", ApplicationListPage, "application.read", route_contexts.project_context
    ),
    *resource_routes(ApplicationDetailPage, *_ACTIONS),
    *client_secret_routes(
        ApplicationResourcePage,
        impact_message=gettext_lazy("Where it is still in use, the application gets no tokens any more."),
        last_secret_impact_message=gettext_lazy(
            "It is the only one: the application gets no tokens until it has a new one."
        ),
        tokens=gettext_lazy("Tokens that the application got for itself by it end at once. Those of people stay."),
    ),
)
