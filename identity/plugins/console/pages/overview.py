"""Overview: credentials that expire soon, recent refusals, and steps to get started."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from markupsafe import Markup

from identity.domain.audit import Result
from identity.domain.messages import gettext_lazy as _
from identity.domain.permissions import Resource
from identity.http import route_contexts
from identity.pages.event_labels import EventLabels
from identity.plugins.console.audit_event_names import AuditEventNames
from identity.plugins.console.badges import Badge, EntityLink, expiry_badge
from identity.plugins.console.console_page import CONSOLE_PATH, ConsolePage
from identity.plugins.console.lists import Cells
from identity.plugins.console.page_sections import ActionSection, TableSection
from identity.plugins.console.routes import ConsoleRoute
from identity.services.overview import ExpiringCredential, ExpiringCredentialKind, RefusalSummary

#: Paths below the user's page.
_CREDENTIAL_PATHS = {ExpiringCredentialKind.KEY: "keys", ExpiringCredentialKind.TOKEN: "personal-access-tokens"}


#: For each step: its field of GettingStarted, title and text, the permission, and the path.
_GETTING_STARTED_STEPS = (
    (
        "project",
        _("Create a project"),
        _("A project holds applications, roles and the users who have them."),
        "project.create",
        "projects/new",
    ),
    (
        "application",
        _("Register an application"),
        _("People sign in to it, or it checks the tokens that it receives."),
        "application.write",
        "projects",
    ),
    (
        "service_user",
        _("Create a service user"),
        _("A program signs in as a service user, without a person."),
        "service_user.write",
        "service-users/new",
    ),
    (
        "key",
        _("Add a key to the service user"),
        _("Its key file is what the program needs to get tokens."),
        "service_user.write",
        "service-users",
    ),
    (
        "manager",
        _("Add a manager"),
        _("Users and service users with a manager role can use this console and the management API."),
        "organization_manager.write",
        "managers/new",
    ),
)


def overview_sections(page: ConsolePage, organization_id: str | None) -> Sequence[TableSection]:
    """Expiring credentials and recent refusals of one organization, or of all (None), as far as the caller may read
    them.
    """
    access = page.services.access_control
    resource = Resource.INSTANCE if organization_id is None else Resource.of_organization(organization_id)
    sections = []
    if access.is_permitted(page.principal, "service_user.read", resource):
        may_write = access.is_permitted(page.principal, "service_user.write", resource)
        expiring = page.services.overview.list_expiring(organization_id, principal=page.principal)
        sections.append(
            TableSection(
                "expiring",
                _("Expires soon"),
                columns=(_("What"), _("Whose data"), _("State"), _("Expiration date")),
                rows=[
                    _expiring_cells(page, credential, organization_id, may_write=may_write) for credential in expiring
                ],
                has_row_buttons=True,
                empty=_("Nothing expires in the next 30 days."),
            )
        )
    if access.is_permitted(page.principal, "audit_event.read", resource):
        rows = _refusal_rows(page, organization_id)
        every = page.button_link(
            _("Audit events"), _audit_events_path(organization_id, {"result": Result.REFUSED.value})
        )
        sections.append(
            TableSection(
                "refused",
                _("Recently refused"),
                action=every if rows else Markup(),
                columns=(_("What"), _("Who"), _("Where from"), _("Last time"), _("Times")),
                rows=rows,
                empty=_("Nothing was refused in the last 24 hours."),
            )
        )
    return sections


def _expiring_cells(
    page: ConsolePage, expiring: ExpiringCredential, organization_id: str | None, *, may_write: bool
) -> Cells:
    """With the organization if all are listed, and a button to add a new credential."""
    ui, t = page.template_macros, page.translator.gettext
    badge = page.render_badge(expiry_badge(expiring.expires_at, page.services.now, page.translator))
    if expiring.owner is None or expiring.kind not in _CREDENTIAL_PATHS:
        key = ui.named(t("Signing key"), f"{CONSOLE_PATH}/instance/signing-keys", expiring.credential.id)
        return key, t("The service itself"), badge, ui.when(expiring.expires_at), ""
    name, is_key = expiring.owner.user.display_name, expiring.kind is ExpiringCredentialKind.KEY
    user = f"{CONSOLE_PATH}/service-users/{expiring.owner.user.id}"
    href = f"{user}/{_CREDENTIAL_PATHS[expiring.kind]}"
    credential_cell = ui.named(
        t("Key") if is_key else t("Personal access token"),
        href,
        expiring.credential.id if is_key else getattr(expiring.credential, "name", ""),
    )
    owner_cell = ui.link(name, user)
    if organization_id is None:
        owner_cell += ui.below(expiring.owner.organization.name)
    new = page.button_link(_("New key") if is_key else _("New token"), f"{href}/new", hidden_label=name, small=True)
    return (
        credential_cell,
        owner_cell,
        badge,
        ui.when(expiring.expires_at),
        new if may_write and expiring.owner.is_active else "",
    )


def _refusal_rows(page: ConsolePage, organization_id: str | None) -> Sequence[Cells]:
    refusals: tuple[RefusalSummary, ...] = page.services.overview.list_refused(
        organization_id, principal=page.principal
    )
    parties, t = AuditEventNames(page, refusals), page.translator.gettext
    return [
        (
            page.template_macros.named(
                t(EventLabels.EVENTS[refusal.event]),
                _audit_events_path(organization_id, _refusal_filters(refusal)),
                t(EventLabels.REASONS.get(refusal.reason or "", refusal.reason or "")),
            ),
            page.entity_link(_actor_link(parties, refusal)),
            refusal.actor.client_address or page.render_placeholder(_("Unknown")),
            page.template_macros.ago(refusal.last_at),
            refusal.count,
        )
        for refusal in refusals
    ]


def _actor_link(parties: AuditEventNames, refusal: RefusalSummary) -> EntityLink:
    """The actor; for anonymous attempts the user they tried to sign in as."""
    if refusal.actor.id is None and refusal.object_id is not None:
        return parties.object_name(refusal.object_kind, refusal.object_id)
    return parties.actor_link(refusal)


def _refusal_filters(refusal: RefusalSummary) -> dict[str, str]:
    filters = {"event": refusal.event, "actor": refusal.actor.id or "", "object": refusal.object_id or ""}
    return {**{name: value for name, value in filters.items() if value}, "result": Result.REFUSED.value}


def _audit_events_path(organization_id: str | None, filters: Mapping[str, str]) -> str:
    root = CONSOLE_PATH if organization_id is None else f"{CONSOLE_PATH}/organizations/{organization_id}"
    return f"{root}/audit-events?{urlencode(filters)}"


class OverviewPage(ConsolePage):
    """The start page of an organization."""

    template = "console/overview.html"
    section = "overview"
    title = _("Overview")

    def template_variables(self) -> Mapping[str, object]:
        getting_started, first, rows = self.services.overview.getting_started(self.context.entity.id), True, []
        for name, title, text, permission, below in _GETTING_STARTED_STEPS:
            done = getattr(getting_started, name)
            right = self.render_badge(Badge(self.translator.gettext("Done"), "success")) if done else Markup()
            if not done and self.has_permission(permission):
                kind = "primary" if first else ""
                right, first = (
                    self.button_link(_("Start"), f"{self.base_path}/{below}", hidden_label=title, kind=kind),
                    False,
                )
            rows.append((title, text, right))
        lead = _("What a new organization needs before programs and people can use it.")
        complete = all(getattr(getting_started, name) for name, *_ in _GETTING_STARTED_STEPS)
        begin = [] if complete else [ActionSection("steps", _("Getting started"), lead, rows=rows)]
        return {"sections_of": [*begin, *overview_sections(self, self.context.entity.id)], "said": self.translate}


ROUTES = (
    ConsoleRoute(
        "/organizations/{organization}/overview", OverviewPage, "organization.read", route_contexts.organization_context
    ),
)
