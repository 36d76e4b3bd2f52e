"""Overview: what expires soon, what was refused lately, and what a new organization still lacks."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from markupsafe import Markup

from identity.domain.audit import Result
from identity.domain.permissions import INSTANCE, organization_resource
from identity.domain.words import say
from identity.http import targets
from identity.pages.event_words import EVENT_WORDS, REASON_WORDS
from identity.plugins.console.badges import Badge, Named, expiry_badge
from identity.plugins.console.console_page import CONSOLE, ConsolePage
from identity.plugins.console.event_parties import Parties
from identity.plugins.console.list_page import Cells
from identity.plugins.console.places import Place
from identity.plugins.console.sections import Panel, Table
from identity.services.overview import Expiring, ExpiringKind, Refusal

#: Where the pages of a user's keys and tokens lie below the user's own.
_BELOW = {ExpiringKind.KEY: "keys", ExpiringKind.TOKEN: "personal-access-tokens"}


#: The first things to do: what first_steps calls it, what one does and why, the permission for it, and where.
_STEPS = (
    (
        "project",
        say("Create a project"),
        say("A project holds applications, roles and who has them."),
        "project.create",
        "projects/new",
    ),
    (
        "application",
        say("Register an application"),
        say("People sign in to it, or it checks the tokens that it is sent."),
        "application.write",
        "projects",
    ),
    (
        "service_user",
        say("Create a service user"),
        say("A program signs in as a service user, without a person."),
        "service_user.write",
        "service-users/new",
    ),
    (
        "key",
        say("Add a key to the service user"),
        say("Its key file is what the program needs to get tokens."),
        "service_user.write",
        "service-users",
    ),
    (
        "manager",
        say("Add a manager"),
        say("Users and service users with a manager role may work in this console and with the management API."),
        "organization_manager.write",
        "managers/new",
    ),
)


def overview_sections(page: ConsolePage, organization_id: str | None) -> Sequence[Table]:
    """What needs attention: of one organization, or (None) of all. Without what whoever looks may not read."""
    access = page.services.access
    resource = INSTANCE if organization_id is None else organization_resource(organization_id)
    sections = []
    if access.may(page.principal, "service_user.read", resource):
        may_write = access.may(page.principal, "service_user.write", resource)
        expiring = page.services.overview.expiring(organization_id, by=page.principal)
        sections.append(
            Table(
                "expiring",
                say("Expires soon"),
                columns=(say("What"), say("Whose"), say("State"), say("Expiration date")),
                rows=[_expiring_cells(page, one, organization_id, may_write=may_write) for one in expiring],
                actions=True,
                empty=say("Nothing expires in the next 30 days."),
            )
        )
    if access.may(page.principal, "audit_event.read", resource):
        rows = _refused_rows(page, organization_id)
        every = page.link(say("Audit events"), _audit_events(organization_id, {"result": Result.REFUSED.value}))
        sections.append(
            Table(
                "refused",
                say("Refused lately"),
                action=every if rows else Markup(),
                columns=(say("What"), say("Who"), say("Where from"), say("Last time"), say("Times")),
                rows=rows,
                empty=say("Nothing was refused in the last 24 hours."),
            )
        )
    return sections


def _expiring_cells(page: ConsolePage, one: Expiring, organization_id: str | None, *, may_write: bool) -> Cells:
    """Something that expires soon, with its organization where several are concerned, and the way to a new one."""
    ui, t = page.ui, page.words.t
    badge = page.badge(expiry_badge(one.expires_at, page.services.now, page.words))
    if one.owner is None or one.kind not in _BELOW:
        key = ui.named(t("Signing key"), f"{CONSOLE}/instance/signing-keys", one.object.id)
        return key, t("The service itself"), badge, ui.when(one.expires_at), ""
    name, user = one.owner.user.display_name, f"{CONSOLE}/service-users/{one.owner.user.id}"
    href, is_key = f"{user}/{_BELOW[one.kind]}", one.kind is ExpiringKind.KEY
    what = ui.named(
        t("Key") if is_key else t("Personal access token"),
        href,
        one.object.id if is_key else getattr(one.object, "name", ""),
    )
    whose = ui.link(name, user)
    if organization_id is None:
        whose += ui.below(one.owner.organization.name)
    new = page.link(say("New key") if is_key else say("New token"), f"{href}/new", what=name, small=True)
    return what, whose, badge, ui.when(one.expires_at), new if may_write and one.owner.active else ""


def _refused_rows(page: ConsolePage, organization_id: str | None) -> Sequence[Cells]:
    """Attempts that were refused."""
    found: tuple[Refusal, ...] = page.services.overview.refused(organization_id, by=page.principal)
    parties, t = Parties(page, found), page.words.t
    return [
        (
            page.ui.named(
                t(EVENT_WORDS[one.event]),
                _audit_events(organization_id, _filters(one)),
                t(REASON_WORDS.get(one.reason or "", one.reason or "")),
            ),
            page.linked(_who(parties, one)),
            one.actor.client_address or page.faint(say("Unknown")),
            page.ui.ago(one.at),
            one.count,
        )
        for one in found
    ]


def _who(parties: Parties, refusal: Refusal) -> Named:
    """Who tried; where nobody was signed in, whom they tried to be."""
    if refusal.actor.id is None and refusal.object_id is not None:
        return parties.thing(refusal.object_kind, refusal.object_id)
    return parties.actor(refusal)


def _filters(refusal: Refusal) -> dict[str, str]:
    given = {"event": refusal.event, "actor": refusal.actor.id or "", "object": refusal.object_id or ""}
    return {**{name: value for name, value in given.items() if value}, "result": Result.REFUSED.value}


def _audit_events(organization_id: str | None, filters: Mapping[str, str]) -> str:
    root = CONSOLE if organization_id is None else f"{CONSOLE}/organizations/{organization_id}"
    return f"{root}/audit-events?{urlencode(filters)}"


class OverviewPage(ConsolePage):
    """Of one organization, where the console begins: attention first, then what is missing."""

    template = "console/overview.html"
    section = "overview"
    title = say("Overview")

    def show(self) -> Mapping[str, object]:
        there, first, rows = self.services.overview.first_steps(self.context.value.id), True, []
        for name, title, text, permission, below in _STEPS:
            done = getattr(there, name)
            right = self.badge(Badge(self.words.t("Done"), "success")) if done else Markup()
            if not done and self.may(permission):
                kind = "primary" if first else ""
                right, first = self.link(say("Start"), f"{self.root}/{below}", what=title, kind=kind), False
            rows.append((title, text, right))
        lead = say("What a new organization needs before programs and people can use it.")
        complete = all(getattr(there, name) for name, *_ in _STEPS)
        begin = [] if complete else [Panel("steps", say("First steps"), lead, rows=rows)]
        return {"sections_of": [*begin, *overview_sections(self, self.context.value.id)], "said": self.said}


PLACES = (Place("/organizations/{organization}/overview", OverviewPage, "organization.read", targets.organization),)
