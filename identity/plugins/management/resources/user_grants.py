"""User grants: roles of projects, given to users."""

from collections.abc import Callable, Iterator
from typing import Any

from pyramid.request import Request

from identity.domain import projects
from identity.domain.errors import Invalid
from identity.domain.words import say
from identity.http import targets
from identity.http.targets import Target
from identity.plugins.management.operation import Call, Operation
from identity.plugins.management.representation import Representation, showing
from identity.plugins.management.resource import Resource
from identity.services.commands import Command
from identity.services.commands.fields import RoleKey
from identity.services.commands.user_grants import AddUserGrant, ChangeUserGrant
from identity.storage.paging import Page


@showing(projects.UserGrant)
class UserGrant(Representation):
    """Roles of a project, given to a user. Where they derive from a project grant, this is named."""


class GrantToUser(Command):
    """Give the user roles of a project."""

    project_id: str
    roles: frozenset[RoleKey] = frozenset()


class GrantOfProject(Command):
    """Give a user roles of the project."""

    user_id: str
    roles: frozenset[RoleKey] = frozenset()


def _list_of_user(call: Call) -> Page[Any]:
    return call.listed(call.services.storage.user_grants.page("user_id", call.value.id, call.page))


def _add_to_user(call: Call) -> Any:
    return _added(call, user_id=call.value.id, project_id=call.command.project_id)


def _add_of_project(call: Call) -> Any:
    return _added(call, user_id=call.command.user_id, project_id=call.value.id)


def _add_of_project_grant(call: Call) -> Any:
    user = call.services.storage.users.find(call.command.user_id)
    if user is None or user.organization_id != call.value.organization_id:
        raise Invalid({"user_id": say("There is no such user.")})
    return _added(call, user_id=user.id, project_id=call.value.project_id)


def _added(call: Call, *, user_id: str, project_id: str) -> Any:
    command = AddUserGrant(user_id=user_id, project_id=project_id, roles=call.command.roles)
    return call.services.user_grants.add(command, by=call.by)


_GRANTS = Resource(
    kind="user_grant",
    answers=UserGrant,
    path="/user-grants/{user_grant}",
    target=targets.user_grant,
    owner=targets.project,
    delete="write",
)


def _of(
    kind: str,
    path: str,
    told: tuple[str, str],
    target: Callable[[Request], Target],
    fetch: Callable[[Call], Any],
    add: Callable[[Call], Any],
    command: type[Command],
) -> Iterator[Operation]:
    """The operations on the grants below one address: which there are, and one more."""
    yield _GRANTS.lists(told[0], fetch, name=f"list_{kind}s", path=path, owner=target)
    yield _GRANTS.makes(
        "add",
        told[1],
        command,
        add,
        name=f"add_{kind}",
        path=path,
        owner=target,
        description="A user of another organization than the project's needs a project grant that holds the roles.",
    )


def _of_a(kind: str, words: str, target: Callable[[Request], Target]) -> Iterator[Operation]:
    """The same of one user of a kind."""
    told = f"Lists the grants of {words}, newest first.", f"Gives {words} roles of a project."
    path = f"/{kind.replace('_', '-')}s/{{{kind}}}/grants"
    return _of(f"{kind}_grant", path, told, target, _list_of_user, _add_to_user, GrantToUser)


OPERATIONS = (
    *_of_a("user", "a person", targets.user),
    *_of_a("service_user", "a service user", targets.service_user),
    *_of(
        "project_user_grant",
        "/projects/{project}/user-grants",
        ("Lists the user grants of a project, newest first.", "Gives a user roles of the project."),
        targets.project,
        lambda call: call.services.user_grants.page_of_project(call.value.id, call.page, by=call.by),
        _add_of_project,
        GrantOfProject,
    ),
    *_of(
        "project_grant_user_grant",
        "/project-grants/{project_grant}/user-grants",
        (
            "Lists the user grants that derive from a project grant, newest first.",
            "Gives a user of the organization that holds the project grant some of its roles.",
        ),
        targets.project_grant,
        lambda call: call.services.user_grants.page_of_project_grant(call.value.id, call.page, by=call.by),
        _add_of_project_grant,
        GrantOfProject,
    ),
    _GRANTS.shows("Shows a user grant."),
    _GRANTS.changes("Replaces the roles of a user grant.", ChangeUserGrant),
    _GRANTS.deactivates("Deactivates a user grant: the user is without these roles until it is reactivated."),
    _GRANTS.reactivates("Reactivates a user grant."),
    _GRANTS.removes("Takes the roles of a user grant away.", verb="remove"),
)
