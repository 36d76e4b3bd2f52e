"""Managers of instance, organization, project and project grant: add in two steps, change, remove."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from pyramid.response import Response

from identity.domain.errors import NotFound
from identity.domain.managers import Manager, Role
from identity.domain.permissions import Level
from identity.domain.users import Subject
from identity.domain.words import say
from identity.http import targets
from identity.pages.forms import VERSION, Form
from identity.pages.signed_in_page import version_of
from identity.plugins.console.confirm_page import ConfirmPage
from identity.plugins.console.console_page import CONSOLE, ConsolePage, Link
from identity.plugins.console.holdings import FEW, Named, resource_names
from identity.plugins.console.list_page import ListPage
from identity.plugins.console.places import Place
from identity.plugins.console.roles_form import ROLE, Candidate, RolesForm, SelectFirst, Users, reads_users
from identity.plugins.console.shown import Shown, shown_user
from identity.services.commands.managers import AddManager, ChangeManager
from identity.storage.paging import Page, PageRequest

_SECTIONS = {
    Level.INSTANCE: "instance",
    Level.ORGANIZATION: "",
    Level.PROJECT: "projects",
    Level.PROJECT_GRANT: "projects",
}


@dataclass(frozen=True)
class Row:
    """A manager as lists show it."""

    manager: Manager
    name: str
    sub: str
    user_href: str
    roles: tuple[str, ...]
    since: datetime
    href: str


def manager_rows(page: ConsolePage, managers: Sequence[Manager]) -> list[Row]:
    """Managers with the names of their users; those of organizations that one does not see stay unnamed."""
    subjects = page.services.storage.users.find_subjects({one.user_id for one in managers})
    shown = {user_id: shown_user(page, subject) for user_id, subject in subjects.items()}
    return [
        Row(
            manager=one,
            name=shown[one.user_id].name,
            sub=shown[one.user_id].sub,
            user_href=shown[one.user_id].href,
            roles=tuple(sorted(one.roles)),
            since=one.created_at,
            href=f"{CONSOLE}/managers/{one.id}",
        )
        for one in managers
        if one.user_id in shown
    ]


def managers_section(page: ConsolePage) -> Mapping[str, object]:
    """What ``managers_section`` of sections.html shows: the newest managers of the page's resource."""
    found = page.services.managers.page(page.resource, PageRequest(limit=FEW))
    return {
        "rows": manager_rows(page, found.items),
        "more": found.next is not None,
        "href": f"{_named(page).href}/managers",
        "may_read": page.may("manager.read"),
        "may_write": page.may("manager.write"),
    }


def _named(page: ConsolePage) -> Named:
    key = page.resource.key
    return resource_names(page, {key})[key]


class OfManagers(ConsolePage):
    """A page about the managers of one resource."""

    @property
    def of_instance(self) -> bool:  # type: ignore[override]
        """True for IAM managers."""
        return self.level is Level.INSTANCE

    @property
    def section(self) -> str:  # type: ignore[override]
        """Where the resource stands in the navigation."""
        return _SECTIONS[self.level]

    @property
    def level(self) -> Level:
        """At which of the four levels."""
        return self.resource.key.level

    def parent(self) -> str:
        """The resource, so that pages of several have titles of their own."""
        return self.named.name

    @cached_property
    def named(self) -> Named:
        """The resource's name, and the address of its page."""
        return _named(self)

    @property
    def href(self) -> str:
        """The address of the list."""
        return f"{self.named.href}/managers"

    def trail(self) -> Sequence[tuple[str, str]]:
        """The resource."""
        return [(self.named.name, self.named.href)]


class ManagerList(OfManagers, ListPage):
    """All managers of the resource, newest first."""

    template = "console/managers.html"
    heading = say("Managers")
    lead = say("Users who manage it, here and everything below.")
    columns = (say("User"), say("Roles"), say("Since"))
    actions = True
    searchable = False
    empty_title = say("No managers yet")
    empty_text = say("Add a user and choose what it may do here.")

    def fetch(self, asked: PageRequest) -> Page[Manager]:
        """The managers."""
        found: Page[Manager] = self.services.managers.page(self.resource, asked)
        return found

    def rows(self, found: Sequence[Manager]) -> Sequence[Row]:
        """With the names of their users."""
        return manager_rows(self, found)

    def new(self) -> Link | None:
        """For whoever may add one."""
        if not self.may("manager.write"):
            return None
        return self.link(say("Add manager"), f"{self.href}/new")

    def show(self) -> Mapping[str, object]:
        """With what one may do to each."""
        return {**super().show(), "may_write": self.may("manager.write")}


class ManagerRoles(OfManagers, RolesForm):
    """The choice of roles for one manager."""

    def about(self) -> str:
        """The resource."""
        return self.named.name

    def options(self) -> Sequence[tuple[str, str, str]]:
        """The roles that whoever looks may grant at the resource, each with its sentence."""
        roles: Sequence[Role] = self.services.access.grantable(self.principal, self.resource)
        return [(one.name, one.name, self.words.t(one.description)) for one in roles]

    def hint(self) -> str:
        """Why these."""
        return say("You can grant roles whose permissions you hold yourself.")

    def nothing_to_choose(self) -> str:
        """There is a role of every level, but not for everybody."""
        return say("There is no role here whose permissions you hold yourself.")

    def back(self) -> str:
        """The list."""
        return self.href


class AddManagerPage(ManagerRoles, SelectFirst):
    """Step 1: select a user. Step 2: choose roles."""

    parameter = "user_id"
    select = say("Select a user")
    select_another = say("Select another user")

    def second_title(self) -> str:
        """The heading of step 2."""
        return say("Choose roles for {name}", name=self.chosen.user.display_name)

    def parent(self) -> str:
        """Other things are given to users on pages of the same heading."""
        return say("Managers of {resource}", resource=self.named.name)

    def trail(self) -> Sequence[tuple[str, str]]:
        """The resource and its managers."""
        return [*super().trail(), (say("Managers"), self.href)]

    @property
    def chosen(self) -> Subject:
        """The user of step 2. Raises NotFound for one that whoever looks may not know of."""
        subject: Subject | None = self.services.storage.users.find_subject(self.selected)
        if subject is None or not self._sees(subject.organization.id):
            raise NotFound("user", self.selected)
        return subject

    def facts(self) -> Sequence[tuple[str, str]]:
        """The user."""
        return [(say("User"), self.chosen.user.display_name), (say("Login name"), self.chosen.login_name)]

    def search_hint(self) -> str:
        """What one searches by."""
        return self._users.hint()

    def candidates(self, asked: PageRequest) -> Page[Candidate]:
        """Users that whoever looks may know of."""
        return self._users.found(asked, self.href_of(""))

    def nothing_found(self, asked: PageRequest) -> str:
        """What is said if nobody fits."""
        return self._users.nothing_found(asked)

    @property
    def _users(self) -> Users:
        """Of the resource's organization; of all of them for whoever manages the instance."""
        if self.services.access.seen_organizations(self.principal) is None:
            return Users(self, None)
        holder = self.resource.holder
        here = holder is not None and reads_users(self, holder.id)
        return Users(self, holder.id if here and holder else self.resource.organization_id, abroad=True)

    def submit(self, form: Form) -> Response:
        """Give the roles."""
        command = self.decoded(AddManager, {"user_id": self.chosen.user.id, "roles": self.chosen_roles(form)})
        self.use_once(form)
        self.services.managers.add(self.resource, command, by=self.principal)
        return self.redirect(self.done(f"{self.named.href}#managers"))


class _OfOne(OfManagers):
    """A page about one manager; its resource is where the roles are held."""

    @property
    def manager(self) -> Manager:
        """Which one."""
        manager: Manager = self.context.value
        return manager

    @property
    def name(self) -> str:
        """The user's name, for whoever may know it."""
        return self.manager.user_id if self._user is None else self._user.name

    @cached_property
    def _user(self) -> Shown | None:
        subject = self.services.storage.users.find_subject(self.manager.user_id)
        return None if subject is None else shown_user(self, subject)

    def trail(self) -> Sequence[tuple[str, str]]:
        """The resource and its managers."""
        return [*super().trail(), (say("Managers"), self.href)]


class ChangeManagerPage(_OfOne, ManagerRoles):
    """Other roles."""

    def title(self) -> str:
        """The heading."""
        return say("Choose roles for {name}", name=self.name)

    def facts(self) -> Sequence[tuple[str, str]]:
        """The user."""
        if self._user is None:
            return []
        return [(say("User"), self.name), (say("Login name"), self._user.sub)]

    def values(self) -> Mapping[str, str | tuple[str, ...]]:
        """What is held, and in which version."""
        return {ROLE: tuple(sorted(self.manager.roles)), VERSION: str(self.manager.version)}

    def submit(self, form: Form) -> Response:
        """Replace the roles."""
        command = self.decoded(ChangeManager, {"roles": self.chosen_roles(form)})
        version = version_of(form.one(VERSION))
        self.services.managers.change(self.manager.id, command, by=self.principal, expected_version=version)
        return self.redirect(self.done(f"{self.named.href}#managers"))


class RemoveManager(_OfOne, ConfirmPage):
    """Asks before the roles are gone."""

    fields = ()

    def question(self) -> str:
        """Whose roles, where."""
        return say("Remove the manager {name} of {resource}?", name=self.name, resource=self.named.name)

    def effects(self) -> Sequence[str]:
        """Which roles."""
        roles = ", ".join(sorted(self.manager.roles))
        return [
            say("{name} loses {roles} of {resource} at once.", name=self.name, roles=roles, resource=self.named.name)
        ]

    def label(self) -> str:
        """The button."""
        return say("Remove manager")

    def back(self) -> str:
        """To the list."""
        return self.href

    def act(self) -> str:
        """Take the roles."""
        self.services.managers.remove(self.manager.id, by=self.principal)
        return f"{self.named.href}#managers"


_OF = {
    "/instance": targets.instance,
    "/organizations/{organization}": targets.organization,
    "/projects/{project}": targets.project,
    "/project-grants/{project_grant}": targets.project_grant,
}

PLACES = (
    *(Place(f"{path}/managers", ManagerList, "manager.read", target) for path, target in _OF.items()),
    *(Place(f"{path}/managers/new", AddManagerPage, "manager.write", target) for path, target in _OF.items()),
    Place("/managers/{manager}/edit", ChangeManagerPage, "manager.write", targets.manager),
    Place("/managers/{manager}/delete", RemoveManager, "manager.write", targets.manager),
)
