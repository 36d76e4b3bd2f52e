"""User grants: roles of projects that users hold, as projects and project grants show them, and each by itself.

Two sections lead to the pages about one grant. The user's says so in its links, so that one gets back to where one was.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pyramid.response import Response

from identity.domain.errors import NotFound
from identity.domain.permissions import Level
from identity.domain.projects import Project, ProjectGrant, UserGrant
from identity.domain.users import HumanUser, ServiceUser, Subject
from identity.domain.words import say
from identity.http import targets
from identity.lazily import lazily
from identity.pages.forms import Form
from identity.plugins.console.badges import Badge, Named
from identity.plugins.console.confirm_page import ConfirmThing
from identity.plugins.console.console_form import ChangePage
from identity.plugins.console.console_page import CONSOLE, ConsolePage, Trail
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.places import Place, of_things
from identity.plugins.console.roles_form import Choices, RolesForm, SelectUser, role_options
from identity.plugins.console.shown import shown_user, shown_users
from identity.plugins.console.things import OfProject, OfProjectGrant, OfServiceUser, OfThing, OfUser
from identity.services.commands.user_grants import AddUserGrant, ChangeUserGrant
from identity.storage.paging import Page, PageRequest

#: The parameter, and its value, of links that stand on a user's page.
OF, USER = "of", "user"


class GrantList(ListPage):
    """User grants, newest first, as one or the other side shows them."""

    title = say("User grants")
    actions = True
    empty_title = say("No user grants yet")
    reading, writing, what = "user_grant.read", "user_grant.write", say("user grant")
    all_of_them = say("All user grants …")

    def grant_cells(self, grant: UserGrant, named: Named, query: str = "") -> Cells:
        """The cells of a grant to, or in, what is named."""
        href = f"{CONSOLE}/user-grants/{grant.id}"
        held = self.roles(grant.roles) or self.faint(say("None"))
        return (
            self.named(named),
            held if grant.active else held + " " + self.badge(Badge(self.words.t("Deactivated"))),
            self.ui.when(grant.created_at),
            self.buttons(href, named.name, remove=say("Remove …"), query=query) if self.may("user_grant.write") else "",
        )


class OfSource(OfThing[Any]):
    """A page about the user grants of a project or of a project grant."""

    below = "/user-grants"

    def may_add(self) -> bool:
        """True if whoever looks sees the users who could be given roles."""
        value = self.thing
        sees: bool = self.services.access.sees(self.principal, value.organization_id)
        return sees and self.may("user_grant.write") and (isinstance(value, Project) or value.active)


class UserGrantList(OfSource, GrantList):
    """One row a user."""

    lead = say("Users with roles of the project, which applications receive as claims.")
    columns = (say("User"), say("Roles"), say("Since"))
    empty_text = say("Select a user and choose the roles that applications are to receive.")
    id = "user-grants"

    def fetch(self, asked: PageRequest) -> Page[UserGrant]:
        grants, key = self.services.user_grants, self.resource.key
        of = grants.page_of_project_grant if key.level is Level.PROJECT_GRANT else grants.page_of_project
        found: Page[UserGrant] = of(key.id, asked, by=self.principal)
        return found

    def rows(self, found: Sequence[UserGrant]) -> Sequence[Cells]:
        """With the names of the users; those of organizations that one does not see stay unnamed."""
        shown = shown_users(self, found)
        return [self.grant_cells(one, shown[one.user_id]) for one in found if one.user_id in shown]

    def may_make(self) -> bool:
        return self.may_add()


class SelectGrantee(OfSource, SelectUser):
    """Step 1: select a user. Step 2: choose roles of the project."""

    @property
    def trail(self) -> Trail:
        return [*super().trail, (GrantList.title, self.list_href)]

    @property
    def parent(self) -> str:
        return self.name

    @property
    def about(self) -> str:
        return project_of(self, self.thing).name

    def may_choose(self, subject: Subject) -> bool:
        return subject.organization.id == self.thing.organization_id and self.may_add()

    def candidates(self, asked: PageRequest) -> Page:  # type: ignore[type-arg]
        return super().candidates(asked) if self.may_add() else Page(())

    @property
    def users_of(self) -> str | None:
        organization_id: str = self.thing.organization_id
        return organization_id

    def options(self) -> Choices:
        return source_options(self, self.thing)

    @property
    def done_at(self) -> str:
        return f"{self.href}#user-grants"

    def submit(self, form: Form) -> Response:
        return give(self, form, self.chosen.user.id, project_of(self, self.thing).id)


def give(page: RolesForm, form: Form, user_id: str, project_id: str) -> Response:
    """Give a user the roles that are chosen, and lead to where that is seen."""
    command = page.decoded(AddUserGrant, {"user_id": user_id, "project_id": project_id, **page.typed(form)})
    page.use_once(form)
    page.services.user_grants.add(command, by=page.principal)
    return page.redirect(page.done(page.done_at))


def project_of(page: ConsolePage, source: Project | ProjectGrant) -> Project:
    """The project, or the one that is granted."""
    return source if isinstance(source, Project) else page.services.projects.get(source.project_id)


def source_options(page: ConsolePage, source: Project | ProjectGrant) -> Choices:
    """The roles of a project, or those that it is granted with."""
    if isinstance(source, ProjectGrant):
        return role_options(page, source.project_id, source.roles)
    return role_options(page, source.id)


class OfUserGrant(OfThing[UserGrant]):
    """A page about one user grant."""

    path, target = "/user-grants/{user_grant}", targets.user_grant
    subject_of, used_by = "user_grant", "user_grants"
    action = "write"

    @property
    def project(self) -> Project:
        """Of which project."""
        return self.services.projects.get(self.thing.project_id)

    @property
    def source(self) -> Project | ProjectGrant:
        """The project, or the project grant from which the roles derive."""
        if self.thing.project_grant_id is None:
            return self.project
        return self.services.project_grants.get(self.thing.project_grant_id)

    @lazily
    def grantee(self) -> Subject:
        """Whose roles. Raises NotFound."""
        subject: Subject | None = self.services.storage.users.find_subject(self.thing.user_id)
        if subject is None:
            raise NotFound("user", self.thing.user_id)
        return subject

    @property
    def name(self) -> str:
        return shown_user(self, self.grantee).name

    @property
    def names(self) -> Mapping[str, object]:
        roles = ", ".join(sorted(self.thing.roles))
        return {"name": self.name, "project": self.project.name, "roles": roles}

    @lazily
    def from_user(self) -> bool:
        """True if one came here from the user's page."""
        return bool(self.request.GET.get(OF) == USER and shown_user(self, self.grantee).href)

    @lazily
    def led_here(self) -> OfThing[Any]:
        """What one came from: the user, the project or the project grant."""
        thing: Any = self.grantee.user if self.from_user else self.source
        led: OfThing[Any] = _KINDS[type(thing)](targets.Target(self.resource, thing), self.request)
        led.organization = self.grantee.organization if self.from_user else self.organization
        return led

    @property
    def section(self) -> str:  # type: ignore[override]
        return self.led_here.section

    @property
    def trail(self) -> Trail:
        return self.led_here.trail

    @property
    def back(self) -> str:
        return f"{self.led_here.href}#{'grants' if self.from_user else 'user-grants'}"


_KINDS: Mapping[type, type[OfThing[Any]]] = {
    HumanUser: OfUser,
    ServiceUser: OfServiceUser,
    Project: OfProject,
    ProjectGrant: OfProjectGrant,
}


class ChangeUserGrantPage(OfUserGrant, RolesForm, ChangePage):
    """Other roles."""

    title = say("Choose roles for {name}")
    command = ChangeUserGrant

    @property
    def about(self) -> str:
        return self.project.name

    def options(self) -> Choices:
        return source_options(self, self.source)


class RemoveUserGrant(OfUserGrant, ConfirmThing):
    """Asks before the roles are gone."""

    at = "/delete"
    title = say("Remove the user grant of {name} in {project}?")
    label = say("Remove user grant")

    @property
    def effects(self) -> Sequence[str]:
        return [say("{name} loses {roles} in {project} at once.")] if self.thing.roles else []

    def act(self) -> None:
        self.services.user_grants.remove(self.thing.id, by=self.principal)


_SOURCES = (OfProject, OfProjectGrant)
USER_GRANTS = {kind: UserGrantList.of(kind) for kind in _SOURCES}

PLACES = (
    *(Place(f"{one.path}/user-grants", USER_GRANTS[one], "user_grant.read", one.target) for one in _SOURCES),
    *(Place(f"{one.path}/user-grants/new", SelectGrantee.of(one), "user_grant.write", one.target) for one in _SOURCES),
    *of_things(ChangeUserGrantPage, RemoveUserGrant),
)
