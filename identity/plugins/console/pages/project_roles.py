"""Roles of a project: what its applications understand."""

from collections.abc import Mapping, Sequence

from pyramid.response import Response

from identity.domain.projects import ProjectRole
from identity.domain.search import finds, search_text
from identity.domain.words import say
from identity.http import targets
from identity.pages.forms import VERSION, Form
from identity.pages.signed_in_page import version_of
from identity.plugins.console.confirm_page import ConfirmPage
from identity.plugins.console.console_page import ConsoleForm, Link, found_or_missing, matched
from identity.plugins.console.list_page import ListPage
from identity.plugins.console.pages.project_grants import project_grant_rows
from identity.plugins.console.pages.projects import OfProject, role_rows
from identity.plugins.console.pages.user_grants import user_grant_rows
from identity.plugins.console.places import Place
from identity.services.commands.projects import AddProjectRole, ChangeProjectRole
from identity.storage.paging import Cursor, Page, PageRequest, Total, page_of

#: How many of those who lose a role are named, and how many grants are looked through for them.
_NAMED = 5
_MANY = PageRequest(limit=200)


class OfRoles(OfProject):
    """A page about the roles of one project."""

    @property
    def href(self) -> str:
        """The address of the list."""
        return f"{self.project_href}/roles"

    def trail(self) -> Sequence[tuple[str, str]]:
        """The project and its roles."""
        return [*super().trail(), (say("Roles"), self.href)]


class RoleList(OfRoles, ListPage):
    """One row a role, by key."""

    template = "console/project_roles.html"
    heading = say("Roles")
    lead = say("Roles reach applications as claims.")
    columns = (say("Role key"), say("Display name"), say("Group"))
    actions = True
    has_state = False
    empty_title = say("No roles yet")
    empty_text = say("Roles reach applications as claims. Add one, then give it to users.")

    def trail(self) -> Sequence[tuple[str, str]]:
        """The project."""
        return super().trail()[:-1]

    def fetch(self, asked: PageRequest) -> Page[ProjectRole]:
        """Roles whose key or display name has in it what is searched for."""
        fitting = [
            one
            for one in sorted(self.services.projects.roles(self.project.id), key=lambda role: role.key)
            if finds(asked.query, search_text(one.key, one.display_name))
        ]
        after = "" if asked.cursor is None else asked.cursor.id
        rest = [one for one in fitting if one.key > after]
        return page_of(rest, asked.limit, lambda one: Cursor(one.key, one.key), Total(len(fitting)))

    def rows(self, found: Sequence[ProjectRole]) -> Sequence[tuple[ProjectRole, str]]:
        """With the addresses below which their pages lie."""
        return role_rows(found, self.href)

    def new(self) -> Link | None:
        """For whoever may add one."""
        if not self.may("project_role.write"):
            return None
        return self.link(say("New"), f"{self.href}/new", say("role"))

    def show(self) -> Mapping[str, object]:
        """With what one may do to each."""
        return {**super().show(), "may_write": self.may("project_role.write")}


class RoleForm(OfRoles, ConsoleForm):
    """The fields of a role."""

    template = "console/project_role_form.html"
    missing = {"key": say("Enter a key."), "display_name": say("Enter a display name.")}  # noqa: RUF012

    def show(self) -> Mapping[str, object]:
        """The button, the way back, and whether there is a key to choose."""
        return {"label": self.words.t(self.label()), "back": self.href, "with_key": "key" in self.fields}

    def label(self) -> str:
        """The button."""
        raise NotImplementedError


class NewRole(RoleForm):
    """Adds one."""

    fields = ("key", "display_name", "group")
    creates = True

    def title(self) -> str:
        """The heading."""
        return say("New role")

    def label(self) -> str:
        """The button."""
        return say("Add")

    def submit(self, form: Form) -> Response:
        """Add it."""
        command = self.decoded(AddProjectRole, form.texts(*self.fields))
        self.use_once(form)
        self.services.projects.add_role(self.project.id, command)
        return self.redirect(self.done(self.href))


class OfRole(OfRoles):
    """A page about one role."""

    @property
    def role(self) -> ProjectRole:
        """Which one. Raises NotFound."""
        key = matched(self, "key")
        roles: Sequence[ProjectRole] = self.services.projects.roles(self.project.id)
        role: ProjectRole = found_or_missing(next((one for one in roles if one.key == key), None), "role", key)
        return role


class ChangeRole(OfRole, RoleForm):
    """Changes display name and group; the key stays."""

    fields = ("display_name", "group")

    def title(self) -> str:
        """The heading."""
        return say("Change the role {key}", key=self.role.key)

    def label(self) -> str:
        """The button."""
        return say("Save")

    def values(self) -> Mapping[str, str]:
        """What is stored, and in which version."""
        role = self.role
        return {"display_name": role.display_name, "group": role.group, VERSION: str(role.version)}

    def submit(self, form: Form) -> Response:
        """Save it."""
        command = self.decoded(ChangeProjectRole, form.texts(*self.fields))
        version = version_of(form.one(VERSION))
        self.services.projects.change_role(self.project.id, self.role.key, command, expected_version=version)
        return self.redirect(self.done(self.href))


class DeleteRole(OfRole, ConfirmPage):
    """Asks before everybody loses it."""

    fields = ()

    def question(self) -> str:
        """With its key and the project."""
        return say("Delete the role {key} of {project}?", key=self.role.key, project=self.project.name)

    def effects(self) -> Sequence[str]:
        """Who loses it: some by name, all in numbers."""
        key, tn = self.role.key, self.words.tn
        falls = self.services.effects.of_role(self.project.id, key)
        grants, users = falls.project_grants, falls.user_grants
        if not grants and not users:
            return [say("No grant holds it. This cannot be undone.")]
        lines: list[str] = [say("Those who hold it lose it at once. This cannot be undone.")]
        if grants:
            names = _some(self._holders(key), grants)
            lines.append(
                tn("{n} project grant loses it: {names}", "{n} project grants lose it: {names}", grants, names=names)
            )
        if users:
            names = _some(self._users(key), users)
            lines.append(tn("{n} user grant loses it: {names}", "{n} user grants lose it: {names}", users, names=names))
        return lines

    def label(self) -> str:
        """The button."""
        return say("Delete role")

    def back(self) -> str:
        """To the list."""
        return self.href

    def act(self) -> str:
        """Delete it."""
        self.services.projects.remove_role(self.project.id, self.role.key)
        return self.href

    def _holders(self, key: str) -> list[str]:
        """Organizations whose project grant has the role, for whoever may read that."""
        if not self.may("project_grant.read"):
            return []
        grants = self.listed(self.services.storage.project_grants.page(self.project.id, _MANY))
        return [row.name for row in project_grant_rows(self, [one for one in grants if key in one.roles][:_NAMED])]

    def _users(self, key: str) -> list[str]:
        """Users whose grant has the role, for whoever may read that."""
        if not self.may("user_grant.read"):
            return []
        grants = self.listed(self.services.storage.user_grants.page_of_project(self.project.id, _MANY))
        return [row.name for row in user_grant_rows(self, [one for one in grants if key in one.roles][:_NAMED])]


def _some(names: Sequence[str], n: int) -> str:
    return ", ".join([*names, *(["…"] if len(names) < n else [])])


_LIST = "/projects/{project}/roles"
# Keys may hold slashes.
_ONE = f"{_LIST}/{{key:.+}}"

PLACES = (
    Place(_LIST, RoleList, "project_role.read", targets.project),
    Place(f"{_LIST}/new", NewRole, "project_role.write", targets.project),
    Place(f"{_ONE}/edit", ChangeRole, "project_role.write", targets.project),
    Place(f"{_ONE}/delete", DeleteRole, "project_role.write", targets.project),
)
