"""Organizations: list, make, look at, change, deactivate and delete."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from identity.domain.entity import Member
from identity.domain.organizations import Organization
from identity.domain.permissions import organization_resource
from identity.domain.words import Message, say
from identity.http import targets
from identity.http.security import ANY_MANAGER
from identity.pages.forms import Form
from identity.plugins.console.badges import Badge, state_badge
from identity.plugins.console.confirm_page import LATER, DeactivatePage, DeletePage, ReactivatePage
from identity.plugins.console.console_form import ChangePage, ConsoleForm, NewPage
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.fields import Field, fields_of
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.pages.branding import looks_section
from identity.plugins.console.pages.legal_holds import hold_badge, hold_panel
from identity.plugins.console.pages.managers import ManagerList
from identity.plugins.console.pages.organization_domains import domains_section
from identity.plugins.console.places import Place, of_things
from identity.plugins.console.sections import Facts, Note, Section
from identity.plugins.console.show_page import ShowPage
from identity.plugins.console.things import BELOW_ORGANIZATIONS, ORGANIZATIONS, OfOrganization
from identity.services.commands.organizations import ChangeOrganization, CreateOrganization
from identity.services.transfer import Transfer
from identity.storage.paging import Page, PageRequest


def seen_page(page: ConsolePage, asked: PageRequest) -> Page[Organization]:
    """The organizations that whoever looks may know of."""
    return page.services.access.page_of_organizations(page.principal, asked)


class OrganizationList(ListPage):
    """One row an organization, by name; those of which one manages a part alone have no link."""

    section = "organizations"
    of_instance = True
    title = say("Organizations")
    lead = say("Each has its own users and projects.")
    columns = (say("Name"), say("Primary domain"), say("State"), say("Created"))
    orders = (("name", say("Name")), ("primary_domain", say("Primary domain")), ("created_at", say("Created")))
    empty_title = say("No organizations yet")
    empty_text = say("An organization holds users and projects. Create one, then add a manager who looks after it.")
    writing, what = "organization.create", say("organization")

    def fetch(self, asked: PageRequest) -> Page[Organization]:
        return seen_page(self, asked)

    def cells(self, one: Organization) -> Cells:
        reads = self.services.access.may(self.principal, "organization.read", organization_resource(one.id))
        return (
            self.ui.named(one.name, f"{ORGANIZATIONS}/{one.id}" if reads else ""),
            one.primary_domain,
            self.badge(state_badge(one.active, self.words)),
            self.ui.when(one.created_at),
        )

    def filters(self) -> Mapping[str, object]:
        may, href = self.may_make(), f"{ORGANIZATIONS}/import"
        return {"beside": self.link(say("Import"), href, what=self.what) if may else ""}


class OrganizationForm(ConsoleForm):
    """The fields of an organization."""

    inputs = fields_of(Organization)

    def drawn(self) -> Sequence[Field]:
        proof = say("A domain of one's own waits until it is proven; until then another one counts.")
        if self.services.domains.may_assert(self.principal):
            proof = say("A domain of one's own counts at once if you enter it, without a proof.")
        hint = self.said(self.about_domain()) + " " + self.said(proof)
        return [
            replace(one, hint=hint, required=not self.creates) if one.name == "primary_domain" else one
            for one in self.inputs
        ]

    def about_domain(self) -> Message:
        """What the domain is for."""
        raise NotImplementedError


class NewOrganization(OrganizationForm, NewPage):
    """Makes one, and leads to its page; without a primary domain one is derived from the name."""

    section = "organizations"
    of_instance = True
    title = say("New organization")
    trail = BELOW_ORGANIZATIONS
    command = CreateOrganization
    pages_at = "organizations"

    def about_domain(self) -> Message:
        default = self.request.registry.identity.settings.default_domain
        return say(
            "Part of every login name. Left empty, it is made of the name: {example}", example=f"acme-gmbh.{default}"
        )

    def typed(self, form: Form) -> dict[str, object]:
        return {**super().typed(form), "primary_domain": form.one("primary_domain") or None}

    def make(self, command: CreateOrganization) -> Any:
        return self.services.organizations.create(command, by=self.principal)


class ChangeOrganizationPage(OfOrganization, OrganizationForm, ChangePage):
    """Name, primary domain, and whether people may register."""

    command = ChangeOrganization

    def drawn(self) -> Sequence[Field]:
        """What takes more than the name is left out for whoever may not change it."""
        needed = {"primary_domain": "organization_domain.write", "registration": "organization_policy.write"}
        return [one for one in super().drawn() if one.name not in needed or self.may(needed[one.name])]

    def about_domain(self) -> Message:
        return say("Part of every login name: with another domain all of them change.")


def _belongs(page: Any) -> bool:
    """True if whoever looks is of the organization, and goes along."""
    return bool(page.subject.organization.id == page.thing.id)


def _out(page: Any) -> str:
    return say("You belong to this organization: you are signed out too.") if _belongs(page) else ""


def _what_ends(page: Any) -> Sequence[str]:
    later = say("A manager of the instance can reactivate it later.") if _belongs(page) else LATER
    return [say("Nobody of it signs in, and its programs lose access at once."), _out(page), later]


_DEEDS = (
    DeactivatePage.of(
        OfOrganization,
        action="delete",
        title=say("Deactivate the organization “{name}”?"),
        offer=say("Nobody of it signs in. You can reactivate it later."),
        effects=_what_ends,
        label=say("Deactivate organization"),
    ),
    ReactivatePage.of(
        OfOrganization,
        action="delete",
        title=say("Reactivate the organization “{name}”?"),
        offer=say("Its users and programs can sign in again."),
        effects=(say("Its users and programs can sign in again."),),
        label=say("Reactivate organization"),
    ),
    DeletePage.of(
        OfOrganization,
        title=say("Delete the organization “{name}”?"),
        offer=say("Removes the organization with its users, projects and grants for ever."),
        undone=say("This cannot be undone. Everything in it is deleted with it."),
        also=_out,
        label=say("Delete organization"),
    ),
)


class OrganizationPage(OfOrganization, ShowPage):
    """All about one: facts, domains, managers."""

    deeds = _DEEDS
    called = {"registration": say("Registration")}  # noqa: RUF012

    @property
    def lead(self) -> Sequence[str]:
        return [say("Organization"), self.thing.primary_domain]

    @property
    def badges(self) -> Sequence[Badge]:
        return [*super().badges, *hold_badge(self)]

    @property
    def actions(self) -> Sequence[Markup]:
        if not Transfer(self.services).may_export(self.thing.id, by=self.principal):
            return super().actions
        return [self.link(say("Export"), f"{self.href}/export", what=self.name), *super().actions]

    @property
    def facts(self) -> Facts:
        return [
            (say("Organization id"), self.ui.identifier(self.thing.id)),
            *self.settings(self.thing),
            (say("Created"), self.ui.when(self.thing.created_at, relative=True)),
        ]

    def shown(self, setting: Member, value: Any) -> object:
        organization = self.thing
        switched_on = setting.name == "registration" and value and organization.active
        if switched_on and not self.services.registration.is_open(organization):
            return say("Switched on here, but the sign-in policy lets nobody register")
        return super().shown(setting, value)

    @property
    def sections(self) -> Sequence[Section | Note | None]:
        lead = say("Users who manage this organization and everything in it.")
        managers = ManagerList.on(self).as_section(lead=lead)
        return [domains_section(self), looks_section(self), managers, hold_panel(self)]

    def last_section(self) -> Section | Note | None:
        instance = self.services.instance()
        if instance is None or instance.organization_id != self.thing.id:
            return super().last_section()
        stays = say("This organization holds the service itself: it cannot be deactivated or deleted.")
        return Note(stays, faint=True) if self.may("organization.delete") else None


_LIST = "/organizations"

PLACES = (
    Place(_LIST, OrganizationList, ANY_MANAGER, targets.instance),
    Place(f"{_LIST}/new", NewOrganization, "organization.create", targets.instance),
    *of_things(OrganizationPage, ChangeOrganizationPage, *_DEEDS),
)
