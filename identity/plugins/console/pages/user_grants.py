"""User grants: roles of projects that users hold, as users, projects and project grants show them.

Two sections lead to the pages about one grant. The user's says so in its links, so that one gets back to where one was.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pyramid.response import Response

from identity.domain.errors import NotFound
from identity.domain.names import name_key
from identity.domain.permissions import Level
from identity.domain.projects import Project, ProjectGrant, UserGrant
from identity.domain.search import is_found
from identity.domain.users import ServiceUser, Subject, User
from identity.domain.words import say
from identity.http import targets
from identity.http.lists import MOST
from identity.pages.forms import VERSION, Form
from identity.pages.signed_in_page import version_of
from identity.plugins.console.badges import Badge, state_badge
from identity.plugins.console.confirm_page import ConfirmPage
from identity.plugins.console.console_page import CONSOLE, ConsolePage, Link
from identity.plugins.console.holdings import FEW, HeldGrant, held_grants
from identity.plugins.console.list_page import ListPage
from identity.plugins.console.places import Place
from identity.plugins.console.project_ways import grant_href, grant_name, grant_trail, held_here, project_trail
from identity.plugins.console.roles_form import (
    ROLE,
    Candidate,
    RolesForm,
    SelectFirst,
    Users,
    role_options,
)
from identity.plugins.console.shown import shown_user, user_href
from identity.services.commands.user_grants import AddUserGrant, ChangeUserGrant
from identity.storage.paging import Page, PageRequest

#: The parameter, and its value, of links that stand on a user's page.
_OF, _USER = "of", "user"

_EMPTY_TITLE = say("No user grants yet")


# --- users as a project shows them -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A user grant as lists of a project show it; ``user_href`` is empty where whoever looks may not read the user."""

    grant: UserGrant
    name: str
    sub: str
    user_href: str
    roles: tuple[str, ...]
    state: Badge | None
    since: datetime
    href: str


def user_grant_rows(page: ConsolePage, grants: Sequence[UserGrant]) -> list[Row]:
    """User grants with the names of their users; those of organizations that one does not see stay unnamed."""
    services = page.services
    subjects = services.storage.users.find_subjects({one.user_id for one in grants})
    shown = {one.user.id: shown_user(page, one) for one in subjects.values()}
    return [
        Row(
            grant=one,
            name=shown[one.user_id].name,
            sub=shown[one.user_id].sub,
            user_href=shown[one.user_id].href,
            roles=tuple(sorted(one.roles)),
            state=None if one.active else state_badge(one.active, page.words),
            since=one.created_at,
            href=f"{CONSOLE}/user-grants/{one.id}",
        )
        for one in grants
        if one.user_id in shown
    ]


def user_grants_section(page: ConsolePage) -> Mapping[str, object]:
    """What ``user_grants_section`` of sections.html shows: the newest user grants of a project or project grant."""
    found = _page_of(page, PageRequest(limit=FEW))
    href = _list_href(page)
    return {
        "rows": user_grant_rows(page, found.items),
        "more": found.next is not None,
        "href": href,
        "may_read": page.may("user_grant.read"),
        "may_write": page.may("user_grant.write"),
        "may_add": _may_add(page),
    }


def _page_of(page: ConsolePage, asked: PageRequest) -> Page[UserGrant]:
    grants, key = page.services.user_grants, page.resource.key
    of = grants.page_of_project_grant if key.level is Level.PROJECT_GRANT else grants.page_of_project
    found: Page[UserGrant] = of(key.id, asked, by=page.principal)
    return found


def _list_href(page: ConsolePage) -> str:
    key = page.resource.key
    return f"{CONSOLE}/{'project-grants' if key.level is Level.PROJECT_GRANT else 'projects'}/{key.id}/user-grants"


def _may_add(page: ConsolePage) -> bool:
    """True if whoever looks sees the users who could be given roles."""
    value: Project | ProjectGrant = page.context.value
    sees: bool = page.services.access.sees(page.principal, value.organization_id)
    return sees and page.may("user_grant.write") and (isinstance(value, Project) or value.active)


class OfSource(ConsolePage):
    """A page about the user grants of a project or of a project grant."""

    @property
    def source(self) -> Project | ProjectGrant:
        """Which one; its organization is the one whose users can be given roles."""
        source: Project | ProjectGrant = self.context.value
        return source

    @property
    def project(self) -> Project:
        """Of which project."""
        source = self.source
        return source if isinstance(source, Project) else self.services.projects.get(source.project_id)

    @property
    def section(self) -> str:  # type: ignore[override]
        """Among the own projects, or those that others have granted."""
        return _section(self, self.source)

    @property
    def href(self) -> str:
        """The address of the list."""
        return _list_href(self)

    def trail(self) -> Sequence[tuple[str, str]]:
        """The project or project grant, with what lies above."""
        return _trail(self, self.source)

    def parent(self) -> str:
        """Project or project grant, so that pages of several have titles of their own."""
        return _trail(self, self.source)[-1][0]


def _section(page: ConsolePage, source: Project | ProjectGrant) -> str:
    return "granted-projects" if isinstance(source, ProjectGrant) and held_here(page, source) else "projects"


def _trail(page: ConsolePage, source: Project | ProjectGrant) -> Sequence[tuple[str, str]]:
    if isinstance(source, Project):
        return project_trail(page, source)
    project = page.services.projects.get(source.project_id)
    holder = page.services.organizations.get(source.organization_id)
    return [*grant_trail(page, project, source), (grant_name(project, holder), grant_href(source))]


class UserGrantList(OfSource, ListPage):
    """One row a user, newest first."""

    template = "console/user_grants.html"
    heading = say("User grants")
    lead = say("Users with roles of the project, which applications receive as claims.")
    columns = (say("User"), say("Roles"), say("Since"))
    actions = True
    empty_title = _EMPTY_TITLE
    empty_text = say("Select a user and choose the roles that applications are to receive.")

    def fetch(self, asked: PageRequest) -> Page[UserGrant]:
        """The user grants."""
        return _page_of(self, asked)

    def rows(self, found: Sequence[UserGrant]) -> Sequence[Row]:
        """With the names of the users."""
        return user_grant_rows(self, found)

    def new(self) -> Link | None:
        """For whoever may give roles."""
        return self.link(say("New"), f"{self.href}/new", say("user grant")) if _may_add(self) else None

    def show(self) -> Mapping[str, object]:
        """With what one may do to each."""
        return {**super().show(), "may_write": self.may("user_grant.write")}


class SelectUser(OfSource, SelectFirst):
    """Step 1: select a user. Step 2: choose roles of the project."""

    parameter = "user_id"
    select = say("Select a user")
    select_another = say("Select another user")

    def second_title(self) -> str:
        """The heading of step 2."""
        return say("Choose roles for {name}", name=self.chosen.user.display_name)

    def trail(self) -> Sequence[tuple[str, str]]:
        """With the list."""
        return [*super().trail(), (say("User grants"), self.href)]

    def about(self) -> str:
        """The project."""
        return self.project.name

    @property
    def chosen(self) -> Subject:
        """The user of step 2. Raises NotFound for one of another organization."""
        subject: Subject | None = self.services.storage.users.find_subject(self.selected)
        if subject is None or subject.organization.id != self.source.organization_id or not _may_add(self):
            raise NotFound("user", self.selected)
        return subject

    def facts(self) -> Sequence[tuple[str, str]]:
        """The user."""
        return [(say("User"), self.chosen.user.display_name), (say("Login name"), self.chosen.login_name)]

    def candidates(self, asked: PageRequest) -> Page[Candidate]:
        """Users of the organization that may give the roles."""
        return self._users.found(asked, self.href_of("")) if _may_add(self) else Page(())

    def search_hint(self) -> str:
        """What one searches by."""
        return self._users.hint()

    def nothing_found(self, asked: PageRequest) -> str:
        """What is said if nobody fits."""
        return self._users.nothing_found(asked)

    @property
    def _users(self) -> Users:
        return Users(self, self.source.organization_id)

    def options(self) -> Sequence[tuple[str, str, str]]:
        """The roles of the project, or those that it is granted with."""
        return _options(self, self.project.id, self.source)

    def back(self) -> str:
        """The list."""
        return self.href

    def submit(self, form: Form) -> Response:
        """Give the roles."""
        values = {
            "user_id": self.chosen.user.id,
            "project_id": self.project.id,
            "roles": self.chosen_roles(form),
        }
        command = self.decoded(AddUserGrant, values)
        self.use_once(form)
        self.services.user_grants.add(command, by=self.principal)
        return self.redirect(self.done(_section_href(self.source)))


def _section_href(source: Project | ProjectGrant) -> str:
    page = f"{CONSOLE}/projects/{source.id}" if isinstance(source, Project) else grant_href(source)
    return f"{page}#user-grants"


def _options(
    page: ConsolePage, project_id: str, source: Project | ProjectGrant | None
) -> Sequence[tuple[str, str, str]]:
    return role_options(page, project_id, source.roles if isinstance(source, ProjectGrant) else None)


# --- projects as a user shows them -----------------------------------------------------------------------------------


class OfUser(ConsolePage):
    """A page about the user grants of one user of either kind."""

    @property
    def user(self) -> User:
        """Which one."""
        user: User = self.context.value
        return user

    @property
    def section(self) -> str:  # type: ignore[override]
        """Where users of the kind stand."""
        return _kind(self.user)[0]

    @property
    def user_href(self) -> str:
        """The address of the user's page."""
        return f"{CONSOLE}/{self.section}/{self.user.id}"

    @property
    def href(self) -> str:
        """The address of the list."""
        return f"{self.user_href}/grants"

    def trail(self) -> Sequence[tuple[str, str]]:
        """List of users and, below it, the user."""
        return _user_trail(self.user, self.user.display_name)

    def parent(self) -> str:
        """The user, so that pages of several have titles of their own."""
        return self.user.display_name


def _kind(user: User) -> tuple[str, str]:
    """Name and words of the section in which a user stands."""
    return ("service-users", say("Service users")) if isinstance(user, ServiceUser) else ("users", say("Users"))


def _user_trail(user: User, name: str) -> Sequence[tuple[str, str]]:
    section, words = _kind(user)
    return [
        (words, f"{CONSOLE}/organizations/{user.organization_id}/{section}"),
        (name, f"{CONSOLE}/{section}/{user.id}"),
    ]


class HeldGrantList(OfUser, ListPage):
    """One row a project, newest first."""

    template = "console/held_grants.html"
    heading = say("User grants")
    lead = say("Roles in projects, which applications receive as claims.")
    columns = (say("Project"), say("Roles"), say("Since"))
    actions = True
    empty_title = _EMPTY_TITLE
    empty_text = say("Select a project and choose the roles that its applications are to receive.")

    def fetch(self, asked: PageRequest) -> Page[UserGrant]:
        """The user's grants."""
        return self.listed(self.services.storage.user_grants.page_of_user(self.user.id, asked))

    def rows(self, found: Sequence[UserGrant]) -> Sequence[HeldGrant]:
        """With the names of the projects."""
        return held_grants(self, found)

    def new(self) -> Link | None:
        """For whoever may give roles."""
        if not self.may("user_grant.write"):
            return None
        return self.link(say("New"), f"{self.href}/new", say("user grant"))

    def show(self) -> Mapping[str, object]:
        """With what one may do to each."""
        return {**super().show(), "may_write": self.may("user_grant.write")}


class SelectProject(OfUser, SelectFirst):
    """Step 1: select a project. Step 2: choose roles of it."""

    parameter = "project_id"
    select = say("Select a project")
    select_another = say("Select another project")

    def second_title(self) -> str:
        """The heading of step 2."""
        return say("Choose roles of {project}", project=self.chosen.name)

    def trail(self) -> Sequence[tuple[str, str]]:
        """With the list."""
        return [*super().trail(), (say("User grants"), self.href)]

    def about(self) -> str:
        """The user."""
        return self.user.display_name

    @property
    def chosen(self) -> Project:
        """The project of step 2. Raises NotFound for one that the user's organization neither owns nor was granted."""
        project: Project | None = self.services.storage.projects.find(self.selected)
        if project is None or (project.organization_id != self.user.organization_id and self._grant is None):
            raise NotFound("project", self.selected)
        return project

    @property
    def _grant(self) -> ProjectGrant | None:
        """The active grant of the project that the user's organization holds."""
        stored = self.services.storage.project_grants
        grant: ProjectGrant | None = stored.find_for(self.selected, self.user.organization_id)
        return grant if grant is not None and grant.active else None

    def facts(self) -> Sequence[tuple[str, str]]:
        """The project and its owner."""
        owner = self.services.organizations.get(self.chosen.organization_id)
        return [(say("Project"), self.chosen.name), (say("Owner"), owner.name)]

    def search_hint(self) -> str:
        """What one searches by."""
        return say("Any part of its name.")

    def candidates(self, asked: PageRequest) -> Page[Candidate]:
        """Projects of the user's organization, then those granted to it."""
        owner = self.services.organizations.get(self.user.organization_id)
        own = self.listed(self.services.storage.projects.page(owner.id, asked))
        found = [
            Candidate(name=one.name, note=owner.name, icon="project", href=self.href_of(one.id)) for one in own.items
        ]
        return Page((*found, *self._granted(asked)), own.next)

    def nothing_found(self, asked: PageRequest) -> str:
        """What is said if no project fits."""
        if asked.query:
            return super().nothing_found(asked)
        return say("There is no project to choose yet. Create one first.")

    def _granted(self, asked: PageRequest) -> Iterator[Candidate]:
        storage = self.services.storage
        every = PageRequest(limit=MOST, active=True)
        held = self.listed(storage.project_grants.page_held(self.user.organization_id, every))
        projects = storage.projects.find_many({one.project_id for one in held})
        owners = storage.organizations.find_many({one.organization_id for one in projects.values()})
        for project in sorted(projects.values(), key=lambda one: name_key(one.name)):
            if is_found(asked.query, project) and project.organization_id in owners:
                note = owners[project.organization_id].name
                yield Candidate(name=project.name, note=note, icon="grant", href=self.href_of(project.id))

    def options(self) -> Sequence[tuple[str, str, str]]:
        """The roles of the project, or those that it is granted with."""
        project = self.chosen
        own = project.organization_id == self.user.organization_id
        return _options(self, project.id, None if own else self._grant)

    def back(self) -> str:
        """The user."""
        return self.user_href

    def submit(self, form: Form) -> Response:
        """Give the roles."""
        values = {"user_id": self.user.id, "project_id": self.chosen.id, "roles": self.chosen_roles(form)}
        command = self.decoded(AddUserGrant, values)
        self.use_once(form)
        self.services.user_grants.add(command, by=self.principal)
        return self.redirect(self.done(f"{self.user_href}#grants"))


# --- one user grant --------------------------------------------------------------------------------------------------


class OfUserGrant(ConsolePage):
    """A page about one user grant."""

    @property
    def grant(self) -> UserGrant:
        """Which one."""
        grant: UserGrant = self.context.value
        return grant

    @property
    def project(self) -> Project:
        """Of which project."""
        project: Project = self.services.projects.get(self.grant.project_id)
        return project

    @property
    def source(self) -> Project | ProjectGrant:
        """The project, or the project grant from which the roles derive."""
        if self.grant.project_grant_id is None:
            return self.project
        source: ProjectGrant = self.services.project_grants.get(self.grant.project_grant_id)
        return source

    @property
    def subject_of_grant(self) -> Subject:
        """Whose roles. Raises NotFound."""
        subject: Subject | None = self.services.storage.users.find_subject(self.grant.user_id)
        if subject is None:
            raise NotFound("user", self.grant.user_id)
        return subject

    @property
    def name(self) -> str:
        """The user's name, for whoever may know it."""
        return shown_user(self, self.subject_of_grant).name

    @property
    def from_user(self) -> bool:
        """True if one came here from the user's page."""
        return bool(self.request.GET.get(_OF) == _USER and shown_user(self, self.subject_of_grant).href)

    @property
    def section(self) -> str:  # type: ignore[override]
        """Where one came from."""
        return _kind(self.subject_of_grant.user)[0] if self.from_user else _section(self, self.source)

    def trail(self) -> Sequence[tuple[str, str]]:
        """The user, or the project or project grant, with what lies above."""
        if self.from_user:
            return _user_trail(self.subject_of_grant.user, self.name)
        return _trail(self, self.source)

    def back(self) -> str:
        """The section from which one came."""
        return f"{user_href(self.subject_of_grant)}#grants" if self.from_user else _section_href(self.source)


class ChangeUserGrantPage(OfUserGrant, RolesForm):
    """Other roles."""

    def title(self) -> str:
        """The heading."""
        return say("Choose roles for {name}", name=self.name)

    def about(self) -> str:
        """The project."""
        return self.project.name

    def values(self) -> Mapping[str, str | tuple[str, ...]]:
        """What is held, and in which version."""
        return {ROLE: tuple(sorted(self.grant.roles)), VERSION: str(self.grant.version)}

    def options(self) -> Sequence[tuple[str, str, str]]:
        """The roles of the project, or those that it is granted with."""
        return _options(self, self.grant.project_id, self.source)

    def submit(self, form: Form) -> Response:
        """Replace the roles."""
        command = self.decoded(ChangeUserGrant, {"roles": self.chosen_roles(form)})
        version = version_of(form.one(VERSION))
        self.services.user_grants.change(self.grant.id, command, by=self.principal, expected_version=version)
        return self.redirect(self.done(self.back()))


class RemoveUserGrant(OfUserGrant, ConfirmPage):
    """Asks before the roles are gone."""

    fields = ()

    def question(self) -> str:
        """Whose roles, where."""
        return say("Remove the user grant of {name} in {project}?", name=self.name, project=self.project.name)

    def effects(self) -> Sequence[str]:
        """Which roles."""
        if not self.grant.roles:
            return []
        roles = ", ".join(sorted(self.grant.roles))
        return [
            say("{name} loses {roles} in {project} at once.", name=self.name, roles=roles, project=self.project.name)
        ]

    def label(self) -> str:
        """The button."""
        return say("Remove user grant")

    def act(self) -> str:
        """Take the roles."""
        self.services.user_grants.remove(self.grant.id, by=self.principal)
        return self.back()


_USERS = {"/users/{user}": targets.user, "/service-users/{service_user}": targets.service_user}
_SOURCES = {"/projects/{project}": targets.project, "/project-grants/{project_grant}": targets.project_grant}
_ONE = "/user-grants/{user_grant}"

PLACES = (
    *(Place(f"{path}/grants", HeldGrantList, "user_grant.read", target) for path, target in _USERS.items()),
    *(Place(f"{path}/grants/new", SelectProject, "user_grant.write", target) for path, target in _USERS.items()),
    *(Place(f"{path}/user-grants", UserGrantList, "user_grant.read", target) for path, target in _SOURCES.items()),
    *(Place(f"{path}/user-grants/new", SelectUser, "user_grant.write", target) for path, target in _SOURCES.items()),
    Place(f"{_ONE}/edit", ChangeUserGrantPage, "user_grant.write", targets.user_grant),
    Place(f"{_ONE}/delete", RemoveUserGrant, "user_grant.write", targets.user_grant),
)
