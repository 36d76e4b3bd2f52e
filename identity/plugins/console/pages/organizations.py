"""Organizations: list, make, look at, change, deactivate and delete."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyramid.response import Response

from identity.domain.organizations import Organization
from identity.domain.permissions import organization_resource
from identity.domain.words import say
from identity.http import targets
from identity.http.security import ANY_MANAGER
from identity.pages.forms import VERSION, Form
from identity.pages.signed_in_page import version_of
from identity.plugins.console.badges import Badge, state_badge
from identity.plugins.console.confirm_page import ConfirmPage, DeactivatePage, ReactivatePage
from identity.plugins.console.console_page import ConsoleForm, ConsolePage, Link
from identity.plugins.console.effect_words import effect_words
from identity.plugins.console.list_page import ListPage
from identity.plugins.console.of_organization import ORGANIZATIONS, OfOrganization
from identity.plugins.console.pages.managers import managers_section
from identity.plugins.console.pages.organization_domains import domain_rows
from identity.plugins.console.places import Place
from identity.services.commands.organizations import ChangeOrganization, CreateOrganization
from identity.services.transfer import Transfer
from identity.storage.paging import Page, PageRequest

SECTION = "organizations"

#: The value of a ticked checkbox.
_YES = "yes"


def seen_page(page: ConsolePage, asked: PageRequest) -> Page[Organization]:
    """The organizations that whoever looks may know of."""
    found: Page[Organization] = page.services.access.page_of_organizations(page.principal, asked)
    return found


@dataclass(frozen=True)
class Row:
    """An organization as the list shows it; ``href`` is empty for one of which one manages a part alone."""

    organization: Organization
    href: str
    state: Badge


class OrganizationList(ListPage):
    """One row an organization, by name."""

    template = "console/organizations.html"
    section = SECTION
    of_instance = True
    heading = say("Organizations")
    lead = say("Each has its own users and projects.")
    columns = (say("Name"), say("Primary domain"), say("State"), say("Created"))
    orders = (("name", say("Name")), ("primary_domain", say("Primary domain")), ("created_at", say("Created")))
    empty_title = say("No organizations yet")
    empty_text = say("An organization holds users and projects. Create one, then add a manager who looks after it.")

    def fetch(self, asked: PageRequest) -> Page[Organization]:
        """Those that whoever looks may know of."""
        return seen_page(self, asked)

    def rows(self, found: Sequence[Organization]) -> Sequence[Row]:
        """With links to those that one may read."""
        access = self.services.access
        return [
            Row(
                organization=one,
                href=f"{ORGANIZATIONS}/{one.id}"
                if access.may(self.principal, "organization.read", organization_resource(one.id))
                else "",
                state=state_badge(one.active, self.words),
            )
            for one in found
        ]

    def new(self) -> Link | None:
        """For whoever may make one."""
        if not self.may("organization.create"):
            return None
        return self.link(say("New"), f"{ORGANIZATIONS}/new", say("organization"))


class NewOrganization(ConsoleForm):
    """Makes one, and leads to its page."""

    template = "console/organization_form.html"
    section = SECTION
    of_instance = True
    creates = True
    fields = ("name", "primary_domain", "registration")

    def title(self) -> str:
        """The heading."""
        return say("New organization")

    def trail(self) -> Sequence[tuple[str, str]]:
        """Below the list."""
        return [(say("Organizations"), ORGANIZATIONS)]

    def show(self) -> Mapping[str, object]:
        """The button, and where names are made under."""
        return {
            "label": self.words.t(say("Create")),
            "back": ORGANIZATIONS,
            "changes": False,
            "asserts": self.services.domains.may_assert(self.principal),
            "default_domain": self.request.registry.identity.settings.default_domain,
        }

    def submit(self, form: Form) -> Response:
        """Make it; without a primary domain one is derived from the name."""
        values = {
            **form.texts("name"),
            "primary_domain": form.one("primary_domain") or None,
            "registration": form.one("registration") == _YES,
        }
        command = self.decoded(CreateOrganization, values)
        self.use_once(form)
        organization = self.services.organizations.create(command, by=self.principal)
        return self.redirect(self.done(f"{ORGANIZATIONS}/{organization.id}"))


class OrganizationPage(OfOrganization):
    """All about one: facts, managers."""

    template = "console/organization.html"

    def title(self) -> str:
        """Its name."""
        return self.one.name

    def trail(self) -> Sequence[tuple[str, str]]:
        """Below the list."""
        return super().trail()[:1]

    def show(self) -> Mapping[str, object]:
        """Whether it has to stay, too."""
        instance = self.services.instance()
        return {
            "one": self.one,
            "href": self.href,
            "badge": state_badge(self.one.active, self.words),
            "may_export": Transfer(self.services).may_export(self.one.id, by=self.principal),
            "domains": domain_rows(self, self.href, self.one.primary_domain),
            "managers": managers_section(self),
            "stays": instance is not None and instance.organization_id == self.one.id,
        }


class ChangeOrganizationPage(OfOrganization, ConsoleForm):
    """Name, primary domain, and whether people may register."""

    template = "console/organization_form.html"
    fields = ("name", "primary_domain", "registration")

    def title(self) -> str:
        """The heading."""
        return say("Change {name}", name=self.one.name)

    def show(self) -> Mapping[str, object]:
        """The button."""
        return {
            "label": self.words.t(say("Save")),
            "back": self.href,
            "changes": True,
            "asserts": self.services.domains.may_assert(self.principal),
        }

    def values(self) -> Mapping[str, str]:
        """What is stored, and in which version."""
        return {
            "name": self.one.name,
            "primary_domain": self.one.primary_domain,
            "registration": _YES if self.one.registration else "",
            VERSION: str(self.one.version),
        }

    def submit(self, form: Form) -> Response:
        """Save it."""
        values = {**form.texts("name", "primary_domain"), "registration": form.one("registration") == _YES}
        command = self.decoded(ChangeOrganization, values)
        version = version_of(form.one(VERSION))
        self.services.organizations.change(self.one.id, command, by=self.principal, expected_version=version)
        return self.redirect(self.done(self.href))


class _Confirm(OfOrganization, ConfirmPage):
    def back(self) -> str:
        return self.href

    def signs_oneself_out(self) -> Sequence[str]:
        """Whoever belongs to it goes along."""
        if self.subject.organization.id != self.one.id:
            return []
        return [say("You belong to this organization: you are signed out too.")]


class Deactivate(DeactivatePage, _Confirm):
    """Asks before nobody of it signs in any more."""

    def question(self) -> str:
        """With its name."""
        return say("Deactivate the organization “{name}”?", name=self.one.name)

    def effects(self) -> Sequence[str]:
        """What stops."""
        return [
            say("Nobody of it signs in, and its programs lose access at once."),
            *self.signs_oneself_out(),
            say("You can reactivate it later.")
            if self.subject.organization.id != self.one.id
            else say("A manager of the instance can reactivate it later."),
        ]

    def label(self) -> str:
        """The button."""
        return say("Deactivate organization")

    def act(self) -> str:
        """Do it."""
        self.services.organizations.deactivate(self.one.id, by=self.principal)
        return self.href


class Reactivate(ReactivatePage, _Confirm):
    """Asks before its users sign in again."""

    def question(self) -> str:
        """With its name."""
        return say("Reactivate the organization “{name}”?", name=self.one.name)

    def effects(self) -> Sequence[str]:
        """Who signs in again."""
        return [say("Its users and programs can sign in again.")]

    def label(self) -> str:
        """The button."""
        return say("Reactivate organization")

    def act(self) -> str:
        """Do it."""
        self.services.organizations.reactivate(self.one.id, by=self.principal)
        return self.href


class Delete(_Confirm):
    """Asks for the name before everything in it is gone for ever."""

    def question(self) -> str:
        """With its name."""
        return say("Delete the organization “{name}”?", name=self.one.name)

    def effects(self) -> Sequence[str]:
        """In numbers."""
        return [
            say("This cannot be undone. Everything in it is deleted with it."),
            *self.signs_oneself_out(),
            *effect_words(self.services.effects.of_organization(self.one.id), self),
        ]

    def label(self) -> str:
        """The button."""
        return say("Delete organization")

    def name_to_type(self) -> str:
        """Its name."""
        return self.one.name

    def act(self) -> str:
        """Do it."""
        self.services.organizations.remove(self.one.id, by=self.principal)
        return ORGANIZATIONS


_ONE = f"/{SECTION}/{{organization}}"

PLACES = (
    Place(f"/{SECTION}", OrganizationList, ANY_MANAGER, targets.instance),
    Place(f"/{SECTION}/new", NewOrganization, "organization.create", targets.instance),
    Place(_ONE, OrganizationPage, "organization.read", targets.organization),
    Place(f"{_ONE}/edit", ChangeOrganizationPage, "organization.write", targets.organization),
    Place(f"{_ONE}/deactivate", Deactivate, "organization.delete", targets.organization),
    Place(f"{_ONE}/reactivate", Reactivate, "organization.delete", targets.organization),
    Place(f"{_ONE}/delete", Delete, "organization.delete", targets.organization),
)
