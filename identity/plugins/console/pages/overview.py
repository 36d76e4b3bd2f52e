"""Overview: figures, what needs attention, credentials that expire soon, recent refusals, and steps to get started."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from markupsafe import Markup, escape

from identity.domain.audit import AuditEvent, Result
from identity.domain.groups import Group, GroupGrant, GroupManager, GroupMember
from identity.domain.managers import Manager
from identity.domain.messages import gettext_lazy as _
from identity.domain.organizations import Organization
from identity.domain.permissions import ManagerLevel, Resource, ResourceKey
from identity.domain.projects import ProjectGrant, UserGrant
from identity.domain.users import Subject
from identity.http import route_contexts
from identity.pages.datetime_formatting import format_relative_time
from identity.pages.event_labels import EventLabels
from identity.plugins.console.actions import Action, action_routes
from identity.plugins.console.audit_event_names import AuditEventNames
from identity.plugins.console.badges import Badge, EntityLink, expiry_badge
from identity.plugins.console.console_page import CONSOLE_PATH, ConsolePage
from identity.plugins.console.figure_cards import FigureCards
from identity.plugins.console.lists import Cells
from identity.plugins.console.memberships import load_resource_links
from identity.plugins.console.page_sections import ActionSection, TableSection
from identity.plugins.console.resource_types import GROUP, ORGANIZATION, ResourcePage
from identity.plugins.console.routes import ConsoleRoute
from identity.plugins.console.user_display import display_user
from identity.services.overview import (
    EndingKind,
    EndingRole,
    ExpiringCredential,
    ExpiringCredentialKind,
    RefusalSummary,
)

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


#: One of them is enough for the table of what expires.
_EXPIRING_PERMISSIONS = (
    "service_user.read",
    "user_grant.read",
    "project_grant.read",
    "organization_manager.read",
    "group.read",
)
_ENDING_LABELS = {
    EndingKind.USER_GRANT: _("User grant"),
    EndingKind.PROJECT_GRANT: _("Project grant"),
    EndingKind.MANAGER: _("Manager role"),
    EndingKind.GROUP_MEMBER: _("Group membership"),
    EndingKind.GROUP_GRANT: _("Project roles of a group"),
    EndingKind.GROUP_MANAGER: _("Manager roles of a group"),
}

#: What expires within this time is pointed out, and what expires within a day is urgent.
_SOON, _URGENT = timedelta(days=7), timedelta(days=1)
_MOST_EXPIRING_POINTED_OUT, _MOST_NETWORKS_POINTED_OUT = 3, 2
#: As many refusals of the last 24 hours from one network address are pointed out.
_MANY_REFUSALS = 10


@dataclass(frozen=True, slots=True)
class AttentionItem:
    """A row of the card “Needs attention”. ``kind`` is bad, warn or info."""

    kind: str
    text: str
    href: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Overview:
    """The lists of the overview, as far as the caller may read them, and what they need to look at."""

    sections: Sequence[TableSection]
    attention: Sequence[AttentionItem]


def load_overview(page: ConsolePage, organization_id: str | None) -> Overview:
    """Of one organization, or of all (None)."""
    access = page.services.access_control
    resource = Resource.INSTANCE if organization_id is None else Resource.of_organization(organization_id)
    sections: list[TableSection] = []
    attention: list[AttentionItem] = []
    if any(access.is_permitted(page.principal, permission, resource) for permission in _EXPIRING_PERMISSIONS):
        may_write = access.is_permitted(page.principal, "service_user.write", resource)
        expiring: Sequence[ExpiringCredential] = ()
        if access.is_permitted(page.principal, "service_user.read", resource):
            expiring = page.services.overview.list_expiring(organization_id, principal=page.principal)
        attention += _expiring_items(page, expiring)
        dated = [
            (credential.expires_at, _expiring_cells(page, credential, organization_id, may_write=may_write))
            for credential in expiring
        ]
        dated += _ending_rows(page, page.services.overview.list_ending(organization_id, principal=page.principal))
        sections.append(
            TableSection(
                "expiring",
                _("Expires soon"),
                columns=(_("What"), _("Whose data"), _("State"), _("Expiration date")),
                rows=[cells for _at, cells in sorted(dated, key=lambda item: item[0])],
                has_row_buttons=True,
                empty=_("Nothing expires in the next 30 days."),
            )
        )
    if access.is_permitted(page.principal, "audit_event.read", resource):
        refusals = page.services.overview.list_refused(organization_id, principal=page.principal)
        attention += _refusal_items(page, refusals)
        rows = _refusal_rows(page, organization_id, refusals)
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
    return Overview(sections, sorted(attention, key=lambda item: item.kind))


def _expiring_items(page: ConsolePage, expiring: Sequence[ExpiringCredential]) -> Iterator[AttentionItem]:
    t, now = page.translator.gettext, page.services.now
    for item in [item for item in expiring if item.expires_at - now <= _SOON][:_MOST_EXPIRING_POINTED_OUT]:
        kind = "bad" if item.expires_at - now <= _URGENT else "warn"
        note = format_relative_time(item.expires_at, now, page.translator)
        if item.owner is None:
            yield AttentionItem(kind, t(_("The signing key retires")), f"{CONSOLE_PATH}/instance/signing-keys", note)
            continue
        text = (
            _("Key of {name} expires")
            if item.kind is ExpiringCredentialKind.KEY
            else _("Personal access token of {name} expires")
        )
        path = f"{CONSOLE_PATH}/service-users/{item.owner.user.id}/{_CREDENTIAL_PATHS[item.kind]}"
        yield AttentionItem(kind, t(text, name=item.owner.user.display_name), path, note)


def _refusal_items(page: ConsolePage, refusals: Sequence[RefusalSummary]) -> Iterator[AttentionItem]:
    """Network addresses with many refusals, those with the most first."""
    t, nt = page.translator.gettext, page.translator.ngettext
    counts: Counter[str] = Counter()
    reasons: dict[str, Counter[str]] = {}
    for refusal in refusals:
        address = refusal.actor.client_address or ""
        counts[address] += refusal.count
        reasons.setdefault(address, Counter())[refusal.reason or ""] += refusal.count
    for address, count in counts.most_common(_MOST_NETWORKS_POINTED_OUT):
        if address and count >= _MANY_REFUSALS:
            [(reason, _count)] = reasons[address].most_common(1)
            text = nt("{n} refusal from one address", "{n} refusals from one address", count)
            note = Markup("{}: {}").format(address, t(EventLabels.REASONS.get(reason, reason)))
            yield AttentionItem("bad", text, "#refused", note)


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


def _ending_rows(page: ConsolePage, ending: Sequence[EndingRole]) -> Iterator[tuple[datetime, Cells]]:
    """What ends, at what, and who has it; with a button to give it for longer."""
    ui, t = page.template_macros, page.translator.gettext
    keys = {item: _resource_key(item) for item in ending}
    links = load_resource_links(page, {key for key in keys.values() if key is not None})
    groups = page.services.storage.groups.find_many(
        {item.entity.group_id for item in ending if isinstance(item.entity, GroupMember)}
    )
    for item in ending:
        key, target = keys[item], EntityLink("")
        if key is not None:
            target = links.get(key, target)
        elif isinstance(item.entity, GroupMember) and item.entity.group_id in groups:
            group = groups[item.entity.group_id]
            target = EntityLink(group.name, GROUP.path_of(group))
        holder = (
            page.entity_link(display_user(page, item.holder))
            if isinstance(item.holder, Subject)
            else ui.link(item.holder.name, GROUP.path_of(item.holder))
            if isinstance(item.holder, Group)
            else escape(item.holder.name)
        )
        name = ui.named(t(_ENDING_LABELS[item.kind]), target.href, target.name)
        yield item.ends_at, (name, holder, page.render_end(item.entity), ui.when(item.ends_at), "")


def _resource_key(ending: EndingRole) -> ResourceKey | None:
    """Where the roles are; None for a membership."""
    match ending.entity:
        case UserGrant(project_grant_id=str(grant_id)) | GroupGrant(project_grant_id=str(grant_id)):
            return ResourceKey(ManagerLevel.PROJECT_GRANT, grant_id)
        case UserGrant(project_id=project_id) | GroupGrant(project_id=project_id):
            return ResourceKey(ManagerLevel.PROJECT, project_id)
        case ProjectGrant(id=grant_id):
            return ResourceKey(ManagerLevel.PROJECT_GRANT, grant_id)
        case Manager(resource=resource) | GroupManager(resource=resource):
            return resource
        case _:
            return None


def _refusal_rows(
    page: ConsolePage, organization_id: str | None, refusals: Sequence[RefusalSummary]
) -> Sequence[Cells]:
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
        organization_id = self.context.entity.id
        hidden = self.services.overview.are_steps_hidden(organization_id, principal=self.principal)
        action = _SHOW_STEPS if hidden else _HIDE_STEPS
        link = self.button_link(action.button, f"{self.base_path}{action.path}", hidden_label=_("Getting started"))
        begin = [ActionSection("steps", _("Getting started"), lead, link, rows=rows)]
        overview = load_overview(self, organization_id)
        figures = FigureCards(self, organization_id, self._tile_links(organization_id))
        return {
            "figures": figures.template_variables(),
            "attention": overview.attention,
            "steps": [] if complete or hidden else begin,
            "steps_link": link if hidden and not complete else "",
            "sections_of": overview.sections,
            "said": self.translate,
        }

    def _tile_links(self, organization_id: str) -> Mapping[str, str]:
        """The lists behind the tiles that the caller may read."""
        links = {}
        if self.has_permission("audit_event.read"):
            links["sign_ins"] = _audit_events_path(organization_id, {"event": "session.started"})
            refused = {"event": AuditEvent.SIGN_IN_REFUSED, "result": Result.REFUSED.value}
            links["refused"] = _audit_events_path(organization_id, refused)
        if self.has_permission("user.read"):
            links["people"] = f"{self.base_path}/users"
        return links


def _overview_path(page: ResourcePage[Organization], organization: Organization) -> str:
    return f"{ORGANIZATION.path_of(organization)}/overview"


#: Each manager decides for themselves.
_HIDE_STEPS = Action[Organization](
    path="/overview/hide-steps",
    permission="read",
    run=lambda page, organization: page.services.overview.hide_steps(organization.id, principal=page.principal),
    title=_("Hide the first steps of {name}?"),
    button=_("Hide …"),
    impact=(_("The overview no longer lists them for you. Other managers still see them."),),
    submit_label=_("Hide the first steps"),
    cancel_label=_("Keep them"),
    back="/overview",
    done=_overview_path,
    is_destructive=False,
)
_SHOW_STEPS = Action[Organization](
    path="/overview/show-steps",
    permission="read",
    run=lambda page, organization: page.services.overview.show_steps(organization.id, principal=page.principal),
    title=_("Show the first steps of {name}?"),
    button=_("Show the first steps …"),
    impact=(_("The overview lists them again for you, until all are done."),),
    submit_label=_("Show the first steps"),
    cancel_label=_("Leave them hidden"),
    back="/overview",
    done=_overview_path,
    is_destructive=False,
)

ROUTES = (
    *action_routes(ORGANIZATION, _HIDE_STEPS, _SHOW_STEPS),
    ConsoleRoute(
        "/organizations/{organization}/overview", OverviewPage, "organization.read", route_contexts.organization_context
    ),
)
