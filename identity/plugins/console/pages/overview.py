"""Overview: what expires soon, what was refused lately, and what a new organization still lacks."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from identity.domain.audit import Result
from identity.domain.permissions import INSTANCE, organization_resource
from identity.domain.words import say
from identity.http import targets
from identity.plugins.console.badges import Badge, expiry_badge
from identity.plugins.console.console_page import CONSOLE, ConsolePage, Link
from identity.plugins.console.event_parties import Parties
from identity.plugins.console.event_words import EVENT_WORDS, REASON_WORDS
from identity.plugins.console.holdings import Named
from identity.plugins.console.places import Place
from identity.services.overview import Expiring, ExpiringKind, Refusal

#: Where the pages of a user's keys and tokens lie below the user's own.
_BELOW = {ExpiringKind.KEY: "keys", ExpiringKind.TOKEN: "personal-access-tokens"}


@dataclass(frozen=True)
class ExpiringRow:
    """Something that expires soon; ``organization`` is told where several are concerned."""

    what: Named
    sub: str
    whose: Named | None
    organization: str
    badge: Badge
    expires_at: datetime
    new: Link | None


@dataclass(frozen=True)
class RefusedRow:
    """Attempts that were refused."""

    at: datetime
    what: str
    reason: str
    who: Named
    address: str
    count: int
    href: str


@dataclass(frozen=True)
class Step:
    """One of the first things to do; ``link`` for whoever may do it."""

    title: str
    text: str
    done: bool
    link: Link | None


def overview_sections(page: ConsolePage, organization_id: str | None) -> Mapping[str, object]:
    """What the macro ``overview_sections`` shows: of one organization, or (None) of all.

    A part that whoever looks may not read is None.
    """
    access = page.services.access
    resource = INSTANCE if organization_id is None else organization_resource(organization_id)
    expiring = refused = None
    if access.may(page.principal, "service_user.read", resource):
        may_write = access.may(page.principal, "service_user.write", resource)
        found = page.services.overview.expiring(organization_id, by=page.principal)
        expiring = [_expiring_row(page, one, organization_id, may_write=may_write) for one in found]
    if access.may(page.principal, "audit_event.read", resource):
        lately = page.services.overview.refused(organization_id, by=page.principal)
        refused = _refused_rows(page, lately, organization_id)
    return {
        "expiring": expiring,
        "refused": refused,
        "all_refused": _audit_events(organization_id, {"result": Result.REFUSED.value}),
    }


def _expiring_row(page: ConsolePage, one: Expiring, organization_id: str | None, *, may_write: bool) -> ExpiringRow:
    words, badge = page.words, expiry_badge(one.expires_at, page.services.now, page.words)
    if one.owner is None or one.kind not in _BELOW:
        href = f"{CONSOLE}/instance/signing-keys"
        signing_key = Named(words.t("Signing key"), href)
        return ExpiringRow(signing_key, one.object.id, None, "", badge, one.expires_at, None)
    user = f"{CONSOLE}/service-users/{one.owner.user.id}"
    href = f"{user}/{_BELOW[one.kind]}"
    key = one.kind is ExpiringKind.KEY
    new = page.link(say("New key") if key else say("New token"), f"{href}/new", one.owner.user.display_name)
    return ExpiringRow(
        what=Named(words.t("Key") if key else words.t("Personal access token"), href),
        sub=one.object.id if key else getattr(one.object, "name", ""),
        whose=Named(one.owner.user.display_name, user),
        organization=one.owner.organization.name if organization_id is None else "",
        badge=badge,
        expires_at=one.expires_at,
        new=new if may_write and one.owner.active else None,
    )


def _refused_rows(page: ConsolePage, found: tuple[Refusal, ...], organization_id: str | None) -> list[RefusedRow]:
    parties = Parties(page, found)
    return [
        RefusedRow(
            at=one.at,
            what=page.words.t(EVENT_WORDS[one.event]),
            reason=page.words.t(REASON_WORDS.get(one.reason or "", one.reason or "")),
            who=_who(parties, one),
            address=one.actor.client_address or "",
            count=one.count,
            href=_audit_events(organization_id, _filters(one)),
        )
        for one in found
    ]


def _who(parties: Parties, refusal: Refusal) -> Named:
    """Who tried; where nobody was signed in, whom they tried to be."""
    if refusal.actor.id is None and refusal.object_id is not None:
        return parties.thing(refusal.object_kind, refusal.object_id)
    return parties.actor(refusal.actor)


def _filters(refusal: Refusal) -> dict[str, str]:
    given = {"event": refusal.event, "actor": refusal.actor.id or "", "object": refusal.object_id or ""}
    return {**{name: value for name, value in given.items() if value}, "result": Result.REFUSED.value}


def _audit_events(organization_id: str | None, filters: Mapping[str, str]) -> str:
    root = CONSOLE if organization_id is None else f"{CONSOLE}/organizations/{organization_id}"
    return f"{root}/audit-events?{urlencode(filters)}"


class OverviewPage(ConsolePage):
    """Of one organization: where the console begins."""

    template = "console/overview.html"
    section = "overview"

    def title(self) -> str:
        """The heading."""
        return say("Overview")

    def show(self) -> Mapping[str, object]:
        """Attention first, then what is missing."""
        organization_id = self.context.value.id
        return {"overview": overview_sections(self, organization_id), "steps": self._steps(organization_id)}

    def _steps(self, organization_id: str) -> list[Step]:
        """None once all is there."""
        there = self.services.overview.first_steps(organization_id)
        root = self.root
        steps = [
            self._step(
                say("Create a project"),
                say("A project holds applications, roles and who has them."),
                there.project,
                "project.create",
                f"{root}/projects/new",
            ),
            self._step(
                say("Register an application"),
                say("People sign in to it, or it checks the tokens that it is sent."),
                there.application,
                "application.write",
                f"{root}/projects",
            ),
            self._step(
                say("Create a service user"),
                say("A program signs in as a service user, without a person."),
                there.service_user,
                "service_user.write",
                f"{root}/service-users/new",
            ),
            self._step(
                say("Add a key to the service user"),
                say("Its key file is what the program needs to get tokens."),
                there.key,
                "service_user.write",
                f"{root}/service-users",
            ),
            self._step(
                say("Add a manager"),
                say(
                    "Users and service users with a manager role may work in this console and with the management API."
                ),
                there.manager,
                "organization_manager.write",
                f"{root}/managers/new",
            ),
        ]
        return [] if all(one.done for one in steps) else steps

    def _step(self, title: str, text: str, done: bool, permission: str, href: str) -> Step:
        t = self.words.t
        link = self.link(say("Start"), href, title) if not done and self.may(permission) else None
        return Step(t(title), t(text), done, link)


PLACES = (Place("/organizations/{organization}/overview", OverviewPage, "organization.read", targets.organization),)
