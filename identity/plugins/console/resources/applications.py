"""Applications of a project: list, detail page, deactivate and delete."""

from collections.abc import Sequence
from datetime import timedelta

from markupsafe import Markup

from identity.domain.applications import Application, ApplicationType
from identity.domain.deletion_impact import DeletionTarget
from identity.domain.entity import EntityField
from identity.domain.messages import gettext_lazy as _
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
    "authorization_endpoint": _("Authorization endpoint"),
    "token_endpoint": _("Token endpoint"),
    "userinfo_endpoint": _("User info endpoint"),
    "introspection_endpoint": _("Introspection endpoint"),
    "revocation_endpoint": _("Revocation endpoint"),
    "end_session_endpoint": _("End session endpoint"),
    "jwks_uri": _("Signing keys"),
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
            page.render_placeholder(_("None"))
            if application.is_public
            else page.render_badge(secrets_badge(counts.get(application.id, 0), page.translator)),
            page.render_badge(state_badge(application.active, page.translator)),
        )
        for application in applications
    ]


APPLICATIONS = ResourceList(
    path="/applications",
    permission="application.read",
    title=_("Applications"),
    lead=_("Programs that people sign in to, and APIs that check tokens."),
    columns=(_("Name"), _("Type"), _("Client id"), _("Secret"), _("State")),
    sort_orders=(("name", _("Name")),),
    fetch=lambda page, request: page.services.storage.applications.page(page.entity_of(Project).id, request),
    rows=_rows,
    empty_title=_("No applications yet"),
    empty_text=_("Register the first application. It gets a client id and, where it can keep one, a secret."),
    create="application.write",
    entity_label=_("application"),
    section_id="applications",
    all_label=_("All applications …"),
    is_primary_task=True,
)

_ACTIONS = (
    Deactivation[Application](
        run=lambda page, application: page.services.applications.deactivate(application.id, principal=page.principal),
        title=_("Deactivate the application “{name}”?"),
        description=_("People can no longer sign in to it. You can reactivate it later."),
        impact=(_("People cannot sign in to it, and it neither gets nor checks tokens."), REACTIVATION_HINT),
        submit_label=_("Deactivate application"),
    ),
    Reactivation[Application](
        run=lambda page, application: page.services.applications.reactivate(application.id, principal=page.principal),
        title=_("Reactivate the application “{name}”?"),
        description=_("People sign in to it again."),
        impact=(_("People sign in to it again, and its secrets work again."),),
        submit_label=_("Reactivate application"),
    ),
    Deletion[Application](
        run=lambda page, application: page.services.applications.remove(application.id, principal=page.principal),
        target=DeletionTarget.APPLICATION,
        title=_("Delete the application “{name}”?"),
        description=_("Permanently removes the application and its secrets."),
        impact=(_("This cannot be undone. Its client id never works again."),),
        submit_label=_("Delete application"),
    ),
)

_SECRETS = ClientSecrets(
    owner=APPLICATION,
    service=lambda services: services.applications,
    section_id="secrets",
    title=_("Client secrets"),
    lead=_(
        "Two can be active, so that you can replace one without a gap: create a new one, "
        "switch to it, then revoke the old one."
    ),
    empty=_("No client secret: the application gets no tokens until it has one."),
    is_primary_task=True,
    impact=_("Wherever it is still in use, the application no longer gets tokens."),
    last_impact=_("It is the only one: the application gets no tokens until you create a new one."),
    tokens=_("Tokens that the application obtained for itself with it end at once. Users' tokens stay valid."),
)


def _has_sign_in(application: Application) -> bool:
    return application.type is not ApplicationType.API


def _badges(page: DetailPage[Application], application: Application) -> Sequence[Badge]:
    development = [Badge(page.translator.gettext("Development"), "warning")] if application.development else []
    return [*active_badge(page, application), *development]


def _descriptions(page: DetailPage[Application], application: Application) -> Descriptions:
    addresses = [
        (_("Redirect URIs"), _format_uris(page, application.redirect_uris)),
        (_("Post-logout redirect URIs"), _format_uris(page, application.post_logout_redirect_uris)),
    ]
    return [
        (_("Client id"), page.template_macros.identifier(application.id)),
        *(addresses if _has_sign_in(application) else []),
        (_("Created"), page.template_macros.when(application.created_at, relative=True)),
    ]


def _format_uris(page: ConsolePage, addresses: Sequence[str]) -> Markup:
    lines = [Markup("<div>{}</div>").format(page.template_macros.identifier(address)) for address in addresses]
    return Markup().join(lines) or page.render_placeholder(_("None"))


def _sections(page: DetailPage[Application], application: Application) -> Sections:
    facts = page.field_descriptions(application, APPLICATION_FIELDS)
    return [
        None if application.is_public else _SECRETS.section(page),
        _endpoints(page),
        DescriptionListSection("settings", _("Settings"), facts=facts),
        branding_section(page) if _has_sign_in(application) else None,
    ]


def _endpoints(page: ConsolePage) -> DescriptionListSection:
    """The service's URLs to configure the application with."""
    identity = page.request.registry.application
    document = metadata.discovery_document_members(identity.protocol_registry, identity.settings)
    issuer = identity.settings.issuer_url
    known = [
        (_("Issuer"), issuer),
        (_("Discovery document"), issuer + metadata.ENDPOINT.path),
        *((label, document[name]) for name, label in _ENDPOINT_LABELS.items() if name in document),
    ]
    return DescriptionListSection(
        "endpoints",
        _("What the application needs to know about this service"),
        _("Most libraries need the issuer alone, and read the rest from the discovery document."),
        facts=[(label, page.template_macros.identifier(address)) for label, address in known],
    )


def _format_value(
    page: DetailPage[Application], application: Application, setting: EntityField, value: object
) -> object:
    if setting.type is str:
        return page.template_macros.code(value)
    if setting.type is not timedelta:
        return format_value(page, application, setting, value)
    minute = timedelta(minutes=1)
    if isinstance(value, timedelta):
        return page.translator.ngettext("{n} minute", "{n} minutes", value // minute)
    usual = getattr(page.request.registry.application.settings, setting.name)
    text = page.translator.ngettext("{n} minute", "{n} minutes", usual // minute)
    return text + " " + page.render_placeholder(_("(default)"))


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
