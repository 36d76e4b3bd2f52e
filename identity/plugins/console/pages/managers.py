"""Managers of instance, organization, project and project grant: add in two steps, change, remove."""

from collections.abc import Mapping, Sequence

from pyramid.response import Response

from identity.domain.managers import Manager, Role
from identity.domain.permissions import Level
from identity.domain.users import Subject
from identity.domain.words import say, say_many
from identity.http import targets
from identity.lazily import lazily
from identity.pages.forms import Form
from identity.plugins.console.badges import Named
from identity.plugins.console.confirm_page import ConfirmThing
from identity.plugins.console.console_form import ChangePage
from identity.plugins.console.console_page import CONSOLE, ConsolePage, Trail
from identity.plugins.console.holdings import resource_names
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.places import Place, of_things
from identity.plugins.console.roles_form import Choices, RolesForm, SelectUser
from identity.plugins.console.sections import Facts
from identity.plugins.console.shown import shown_user, shown_users
from identity.plugins.console.things import OfThing
from identity.services.commands.managers import AddManager, ChangeManager
from identity.storage.paging import Page, PageRequest


class OfManagers(ConsolePage):
    """A page about the managers of one resource."""

    @property
    def of_instance(self) -> bool:  # type: ignore[override]
        return self.level is Level.INSTANCE

    @property
    def section(self) -> str:  # type: ignore[override]
        return {Level.INSTANCE: "instance", Level.ORGANIZATION: ""}.get(self.level, "projects")

    @property
    def level(self) -> Level:
        """At which of the four levels."""
        return self.resource.key.level

    @property
    def parent(self) -> str:
        return self.at_resource.name

    @lazily
    def at_resource(self) -> Named:
        """The resource's name, and the address of its page."""
        key = self.resource.key
        return resource_names(self, {key})[key]

    @property
    def list_href(self) -> str:
        """The address of the list."""
        return f"{self.at_resource.href}/managers"

    @property
    def trail(self) -> Trail:
        return [(self.at_resource.name, self.at_resource.href)]


class ManagerList(OfManagers, ListPage):
    """All managers of the resource, newest first."""

    title = say("Managers")
    lead = say("Users who manage it, here and everything below.")
    columns = (say("User"), say("Roles"), say("Since"))
    actions = True
    searchable = False
    empty_title = say("No managers yet")
    empty_text = say("Add a user and choose what it may do here.")
    reading, writing, new_label = "manager.read", "manager.write", say("Add manager")
    id, all_of_them = "managers", say("All managers …")

    def fetch(self, asked: PageRequest) -> Page[Manager]:
        return self.services.managers.page(self.resource, asked, by=self.principal)

    def rows(self, found: Sequence[Manager]) -> Sequence[Cells]:
        shown, may_write = shown_users(self, found), self.may("manager.write")
        return [
            (
                self.named(user := shown[one.user_id]),
                self.roles(one.roles),
                self.ui.when(one.created_at),
                self.buttons(f"{CONSOLE}/managers/{one.id}", user.name, remove=say("Remove …")) if may_write else "",
            )
            for one in found
            if one.user_id in shown
        ]


class BelowManagers(OfManagers):
    """A page below the list."""

    @property
    def back(self) -> str:
        """The list."""
        return self.list_href

    @property
    def trail(self) -> Trail:
        return [*super().trail, (ManagerList.title, self.list_href)]


class ManagerRoles(BelowManagers, RolesForm):
    """The choice of roles for one manager."""

    hint = say("You can grant roles whose permissions you hold yourself.")
    nothing_to_choose = say("There is no role here whose permissions you hold yourself.")

    @property
    def about(self) -> str:
        return self.at_resource.name

    def options(self) -> Choices:
        roles: Sequence[Role] = self.services.access.grantable(self.principal, self.resource)
        return [(one.name, one.name, self.words.t(one.description)) for one in roles]

    @property
    def done_at(self) -> str:
        return f"{self.at_resource.href}#managers"


class AddManagerPage(ManagerRoles, SelectUser):
    """Step 1: select a user. Step 2: choose roles."""

    abroad = True

    @property
    def parent(self) -> str:
        return say("Managers of {resource}", resource=self.at_resource.name)

    def may_choose(self, subject: Subject) -> bool:
        home, holder = subject.organization.id, self.resource.holder
        # Each side of a project grant chooses among its own people.
        chosen_here = holder is None or home in (self.resource.organization_id, holder.id)
        return chosen_here and self._sees(home)

    @property
    def users_of(self) -> str | None:
        """That of the resource; of a project grant the side that one sees, first the one that holds it. All for whoever
        manages the instance."""
        holder = self.resource.holder
        if holder is not None and self._sees(holder.id):
            return holder.id
        if holder is None and self.services.access.seen_organizations(self.principal) is None:
            return None
        return self.resource.organization_id

    @property
    def notes(self) -> Sequence[str]:
        subject, found = self.chosen, []
        if self.resource.organization_id not in (None, subject.organization.id):
            words = say(
                "{name} belongs to {organization}, whose managers can rename, reset or deactivate this account. A role"
                " here trusts them.",
                name=subject.user.display_name,
                organization=subject.organization.name,
            )
            found.append(words)
        if self.level is Level.INSTANCE:
            found.append(say("People with a role at the instance sign in only in ways that the instance allows."))
        ended = self.services.managers.ends(subject.user.id, self.resource)
        if ended:
            found.append(say_many("{n} session of this user ends.", "{n} sessions of this user end.", ended))
        if ended and subject.user.id == self.subject.user.id:
            found.append(say("Your own session is among them."))
        return found

    def submit(self, form: Form) -> Response:
        command = self.decoded(AddManager, {"user_id": self.chosen.user.id, **self.typed(form)})
        self.use_once(form)
        self.services.managers.add(self.resource, command, by=self.principal)
        return self.redirect(self.done(self.done_at))


class OfManager(BelowManagers, OfThing[Manager]):
    """A page about one manager; its resource is where the roles are held."""

    path, target = "/managers/{manager}", targets.manager
    subject_of, used_by = "manager", "managers"

    @lazily
    def user(self) -> Named:
        """As whoever looks may know them."""
        subject = self.services.storage.users.find_subject(self.thing.user_id)
        return Named(self.thing.user_id) if subject is None else shown_user(self, subject)

    @property
    def names(self) -> Mapping[str, object]:
        roles = ", ".join(sorted(self.thing.roles))
        return {"name": self.user.name, "resource": self.at_resource.name, "roles": roles}


class ChangeManagerPage(OfManager, ManagerRoles, ChangePage):
    """Other roles."""

    title = say("Choose roles for {name}")
    command = ChangeManager

    @property
    def facts(self) -> Facts:
        return [(say("User"), self.user.name), (say("Login name"), self.user.sub)] if self.user.sub else []


class RemoveManager(OfManager, ConfirmThing):
    """Asks before the roles are gone."""

    at, action = "/delete", "write"
    title = say("Remove the manager {name} of {resource}?")
    effects = (say("{name} loses {roles} of {resource} at once."),)
    label = say("Remove manager")

    def act(self) -> str:
        done_at = f"{self.at_resource.href}#managers"
        self.services.managers.remove(self.thing.id, by=self.principal)
        return done_at


_OF = {
    "/instance": targets.instance,
    "/organizations/{organization}": targets.organization,
    "/projects/{project}": targets.project,
    "/project-grants/{project_grant}": targets.project_grant,
}

PLACES = (
    *(Place(f"{path}/managers", ManagerList, "manager.read", target) for path, target in _OF.items()),
    *(Place(f"{path}/managers/new", AddManagerPage, "manager.write", target) for path, target in _OF.items()),
    *of_things(ChangeManagerPage, RemoveManager),
)
