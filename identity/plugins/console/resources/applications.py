"""Applications of a project: list, detail page, deactivate and delete."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from markupsafe import Markup

from identity.domain.applications import Application, ApplicationType
from identity.domain.deletion_impact import DeletionTarget
from identity.domain.entity import EntityField
from identity.domain.messages import gettext_lazy
from identity.domain.projects import Project
from identity.plugins.console.actions import REACTIVATION_HINT, Deactivation, Deletion, Reactivation
from identity.plugins.console.badges import Badge, secrets_badge, state_badge
from identity.plugins.console.client_secrets import ClientSecrets
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.fields.applications import APPLICATION_FIELDS, APPLICATION_TYPE_OPTIONS
from identity.plugins.console.lists import Cells, ResourceList, list_route
from identity.plugins.console.page_sections import DescriptionListSection, Descriptions
from identity.plugins.console.resource_pages import DetailPage, ResourcePages, Sections, active_badge, format_value
from identity.plugins.console.resource_types import APPLICATION, PROJECT
from identity.plugins.console.resources.branding import branding_section
from identity.provider.endpoints import metadata

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


def _rows(page: ConsolePage, applications: Sequence[Application]) -> Sequence[Cells]:
    """With their secrets in one badge; public clients have none."""
    ui = page.template_macros
    counts = page.services.storage.applications.count_secrets([application.id for application in applications])
    return [
        (
            ui.named(application.name, APPLICATION.path_of(application)),
            page.translate(APPLICATION_TYPE_OPTIONS[application.type].label),
            ui.code(application.id),
            page.render_placeholder(gettext_lazy("None"))
            if application.is_public
            else page.render_badge(secrets_badge(counts.get(application.id, 0), page.translator)),
            page.render_badge(state_badge(application.active, page.translator)),
        )
        for application in applications
    ]


APPLICATIONS = ResourceList(
    path="/applications",
    permission="application.read",
    title=gettext_lazy("Applications"),
    lead=gettext_lazy("Programs that people sign in to, and APIs that check tokens."),
    columns=(
        gettext_lazy("Name"),
        gettext_lazy("Type"),
        gettext_lazy("Client id"),
        gettext_lazy("Secret"),
        gettext_lazy("State"),
    ),
    sort_orders=(("name", gettext_lazy("Name")),),
    fetch=lambda page, request: page.services.storage.applications.page(page.entity_of(Project).id, request),
    rows=_rows,
    empty_title=gettext_lazy("No applications yet"),
    empty_text=gettext_lazy(
        "Register the first application. It gets a client id and, where it can keep one, a secret."
    ),
    create="application.write",
    entity_label=gettext_lazy("application"),
    section_id="applications",
    all_label=gettext_lazy("All applications …"),
    is_primary_task=True,
)

_ACTIONS = (
    Deactivation[Application](
        run=lambda page, application: page.services.applications.deactivate(application.id, principal=page.principal),
        title=gettext_lazy("Deactivate the application “{name}”?"),
        description=gettext_lazy("Nobody signs in to it any more. You can reactivate it later."),
        impact=(gettext_lazy("Nobody signs in to it, and it gets and checks no tokens."), REACTIVATION_HINT),
        submit_label=gettext_lazy("Deactivate application"),
    ),
    Reactivation[Application](
        run=lambda page, application: page.services.applications.reactivate(application.id, principal=page.principal),
        title=gettext_lazy("Reactivate the application “{name}”?"),
        description=gettext_lazy("People sign in to it again."),
        impact=(gettext_lazy("People sign in to it again, and its secrets work again."),),
        submit_label=gettext_lazy("Reactivate application"),
    ),
    Deletion[Application](
        run=lambda page, application: page.services.applications.remove(application.id, principal=page.principal),
        target=DeletionTarget.APPLICATION,
        title=gettext_lazy("Delete the application “{name}”?"),
        description=gettext_lazy("Removes the application and its secrets for ever."),
        impact=(gettext_lazy("This cannot be undone. Its client id never works again."),),
        submit_label=gettext_lazy("Delete application"),
    ),
)

_SECRETS = ClientSecrets(
    owner=APPLICATION,
    service=lambda services: services.applications,
    section_id="secrets",
    title=gettext_lazy("Client secrets"),
    lead=gettext_lazy(
        "Two can be live, so that one is replaced without a gap: make a new one, use it, end the old one."
    ),
    empty=gettext_lazy("No client secret: the application gets no tokens until it has one."),
    is_primary_task=True,
    impact=gettext_lazy("Where it is still in use, the application gets no tokens any more."),
    last_impact=gettext_lazy("It is the only one: the application gets no tokens until it has a new one."),
    tokens=gettext_lazy("Tokens that the application got for itself by it end at once. Those of people stay."),
)


def _has_sign_in(application: Application) -> bool:
    return application.type is not ApplicationType.API


def _badges(page: DetailPage[Application], application: Application) -> Sequence[Badge]:
    development = [Badge(page.translator.gettext("Development"), "warning")] if application.development else []
    return [*active_badge(page, application), *development]


def _descriptions(page: DetailPage[Application], application: Application) -> Descriptions:
    addresses = [
        (gettext_lazy("Redirect URIs"), _format_uris(page, application.redirect_uris)),
        (gettext_lazy("Post-logout redirect URIs"), _format_uris(page, application.post_logout_redirect_uris)),
    ]
    return [
        (gettext_lazy("Client id"), page.template_macros.identifier(application.id)),
        *(addresses if _has_sign_in(application) else []),
        (gettext_lazy("Created"), page.template_macros.when(application.created_at, relative=True)),
    ]


def _format_uris(page: ConsolePage, addresses: Sequence[str]) -> Markup:
    lines = [Markup("<div>{}</div>").format(page.template_macros.identifier(address)) for address in addresses]
    return Markup().join(lines) or page.render_placeholder(gettext_lazy("None"))


def _sections(page: DetailPage[Application], application: Application) -> Sections:
    facts = page.field_descriptions(application, APPLICATION_FIELDS)
    return [
        None if application.is_public else _SECRETS.section(page),
        _endpoints(page),
        DescriptionListSection("settings", gettext_lazy("Settings"), facts=facts),
        branding_section(page) if _has_sign_in(application) else None,
    ]


def _endpoints(page: ConsolePage) -> DescriptionListSection:
    """The service's URLs to configure the application with."""
    identity = page.request.registry.application
    document = metadata.discovery_document_members(identity.protocol_registry, identity.settings)
    issuer = identity.settings.issuer_url
    known = [
        (gettext_lazy("Issuer"), issuer),
        (gettext_lazy("Discovery document"), issuer + metadata.ENDPOINT.path),
        *((label, document[name]) for name, label in _ENDPOINT_LABELS.items() if name in document),
    ]
    return DescriptionListSection(
        "endpoints",
        gettext_lazy("What the application has to know of us"),
        gettext_lazy("Most libraries need the issuer alone, and read the rest from the discovery document."),
        facts=[(label, page.template_macros.identifier(address)) for label, address in known],
    )


def _format_value(page: DetailPage[Application], application: Application, setting: EntityField, value: Any) -> object:
    if setting.type is str:
        return page.template_macros.code(value)
    if setting.type is not timedelta:
        return format_value(page, application, setting, value)
    span = value or getattr(page.request.registry.application.settings, setting.name)
    text = page.translator.ngettext("{n} minute", "{n} minutes", span // timedelta(minutes=1))
    return text if value else text + " " + page.render_placeholder(gettext_lazy("as everywhere"))


_PAGES = ResourcePages(
    type=APPLICATION,
    lead=lambda page, application: [
        APPLICATION_TYPE_OPTIONS[application.type].label,
        page.services.projects.get(application.project_id).name,
    ],
    badges=_badges,
    descriptions=_descriptions,
    sections=_sections,
    actions=_ACTIONS,
    hidden_fields=("name", "redirect_uris", "post_logout_redirect_uris", "development"),
    format_value=_format_value,
)

ROUTES = (list_route(APPLICATIONS, PROJECT), *_PAGES.routes(), *_SECRETS.routes())
