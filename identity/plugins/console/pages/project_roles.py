"""Roles of a project: what its applications understand."""

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from pyramid.response import Response

from identity.domain.projects import ProjectRole
from identity.domain.search import finds, search_text
from identity.domain.words import say, say_many
from identity.http import targets
from identity.pages.forms import VERSION, Form, Value
from identity.pages.signed_in_page import version_of
from identity.plugins.console.confirm_page import ConfirmPage
from identity.plugins.console.console_form import ConsoleForm
from identity.plugins.console.console_page import Trail, pick
from identity.plugins.console.fields import fields_of
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.pages.project_grants import holder_names
from identity.plugins.console.places import Place
from identity.plugins.console.shown import shown_users
from identity.plugins.console.things import OfProject
from identity.services.commands.projects import AddProjectRole, ChangeProjectRole
from identity.storage.paging import Cursor, Page, PageRequest, Total, page_of

#: How many of those who lose a role are named, and how many grants are looked through for them.
_NAMED = 5
_MANY = PageRequest(limit=200)


class RoleList(OfProject, ListPage):
    """One row a role, by key."""

    below = "/roles"

    title = say("Roles")
    lead = say("Roles reach applications as claims.")
    columns = (say("Role key"), say("Display name"), say("Group"))
    actions = True
    has_state = False
    empty_title = say("No roles yet")
    empty_text = say("Roles reach applications as claims. Add one, then give it to users.")
    reading, writing, what = "project_role.read", "project_role.write", say("role")
    id, all_of_them = "roles", say("All roles …")

    def fetch(self, asked: PageRequest) -> Page[ProjectRole]:
        fitting = [
            one
            for one in sorted(self.services.projects.roles(self.thing.id), key=lambda role: role.key)
            if finds(asked.query, search_text(one.key, one.display_name))
        ]
        after = "" if asked.cursor is None else asked.cursor.id
        rest = [one for one in fitting if one.key > after]
        return page_of(rest, asked.limit, lambda one: Cursor(one.key, one.key), Total(len(fitting)))

    def cells(self, one: ProjectRole) -> Cells:
        href = f"{self.list_href}/{quote(one.key, safe='')}"
        return (
            self.ui.code(one.key),
            one.display_name,
            one.group or self.faint(say("None")),
            self.buttons(href, one.key, remove=say("Delete …")) if self.may("project_role.write") else "",
        )


class OfRoles(OfProject):
    """A page about the roles of one project."""

    below = "/roles"

    @property
    def trail(self) -> Trail:
        return [*super().trail, (RoleList.title, self.back)]


_FIELDS = fields_of(ProjectRole)


class NewRole(OfRoles, ConsoleForm):
    """Adds one."""

    inputs = _FIELDS
    creates = True
    title = say("New role")
    label = say("Add")

    def submit(self, form: Form) -> Response:
        command = self.decoded(AddProjectRole, self.typed(form))
        self.use_once(form)
        self.services.projects.add_role(self.thing.id, command)
        return self.redirect(self.done(self.back))


class OfRole(OfRoles):
    """A page about one role."""

    @property
    def role(self) -> ProjectRole:
        """Which one. Raises NotFound."""
        role: ProjectRole = pick(self, self.services.projects.roles(self.thing.id), "role", "key", "key")
        return role

    @property
    def names(self) -> Mapping[str, object]:
        return {"key": self.role.key, "project": self.thing.name}


class ChangeRole(OfRole, ConsoleForm):
    """Changes display name and group; the key stays."""

    inputs = tuple(one for one in _FIELDS if one.name in ChangeProjectRole.model_fields)
    title = say("Change the role {key}")

    def values(self) -> Mapping[str, Value]:
        return self.stored(self.role)

    def submit(self, form: Form) -> Response:
        command = self.decoded(ChangeProjectRole, self.typed(form))
        version = version_of(form.one(VERSION))
        self.services.projects.change_role(self.thing.id, self.role.key, command, expected_version=version)
        return self.redirect(self.done(self.back))


class DeleteRole(OfRole, ConfirmPage):
    """Asks before everybody loses it."""

    title = say("Delete the role {key} of {project}?")
    label = say("Delete role")

    @property
    def effects(self) -> Sequence[str]:
        """Who loses it: some by name, all in numbers."""
        falls = self.services.storage.effects.of_role(self.thing.id, self.role.key)
        grants, users = falls.project_grants, falls.user_grants
        if not grants and not users:
            return [say("No grant holds it. This cannot be undone.")]
        lines: list[str] = [say("Those who hold it lose it at once. This cannot be undone.")]
        if grants:
            names = _some(self._holders(), grants)
            lines.append(
                say_many(
                    "{n} project grant loses it: {names}", "{n} project grants lose it: {names}", grants, names=names
                )
            )
        if users:
            names = _some(self._users(), users)
            lines.append(
                say_many("{n} user grant loses it: {names}", "{n} user grants lose it: {names}", users, names=names)
            )
        return lines

    def act(self) -> None:
        self.services.projects.remove_role(self.thing.id, self.role.key)

    def _holders(self) -> Sequence[str]:
        """Organizations whose project grant has the role, for whoever may read that."""
        if not self.may("project_grant.read"):
            return []
        grants = self.listed(self.services.storage.project_grants.page("project_id", self.thing.id, _MANY))
        some = [one for one in grants if self.role.key in one.roles][:_NAMED]
        shown = holder_names(self, some)
        return [shown[one.organization_id] for one in some if one.organization_id in shown]

    def _users(self) -> Sequence[str]:
        """Users whose grant has the role, for whoever may read that."""
        if not self.may("user_grant.read"):
            return []
        grants = self.listed(self.services.storage.user_grants.page("project_id", self.thing.id, _MANY))
        some = [one for one in grants if self.role.key in one.roles][:_NAMED]
        shown = shown_users(self, some)
        return [shown[one.user_id].name for one in some if one.user_id in shown]


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
