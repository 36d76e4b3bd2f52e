"""User grants: roles of projects, given to users."""

from collections.abc import Callable, Iterator
from typing import Any

from pyramid.request import Request

from identity.domain.errors import Invalid
from identity.domain.words import say
from identity.http import targets
from identity.http.targets import Target
from identity.plugins.management.operation import PAGED, STATES, Call, Operation, shown
from identity.plugins.management.representation import State, Versioned, Words
from identity.services.commands import Command
from identity.services.commands.fields import RoleKey
from identity.services.commands.user_grants import AddUserGrant, ChangeUserGrant
from identity.storage.paging import Page


class UserGrant(Versioned):
    """Roles of a project, given to a user. Where they derive from a project grant, this is named."""

    user_id: str
    organization_id: str
    project_id: str
    project_grant_id: str | None
    roles: Words
    state: State


class GrantToUser(Command):
    """Give the user roles of a project."""

    project_id: str
    roles: frozenset[RoleKey] = frozenset()


class GrantOfProject(Command):
    """Give a user roles of the project."""

    user_id: str
    roles: frozenset[RoleKey] = frozenset()


def _list_of_user(call: Call) -> Page[UserGrant]:
    return call.listed(UserGrant, call.services.storage.user_grants.page_of_user(call.value.id, call.page))


def _list_of_project(call: Call) -> Page[UserGrant]:
    return shown(UserGrant, call.services.user_grants.page_of_project(call.value.id, call.page, by=call.by))


def _list_of_project_grant(call: Call) -> Page[UserGrant]:
    return shown(UserGrant, call.services.user_grants.page_of_project_grant(call.value.id, call.page, by=call.by))


def _add_to_user(call: Call) -> UserGrant:
    return _added(call, user_id=call.value.id, project_id=call.command.project_id)


def _add_of_project(call: Call) -> UserGrant:
    return _added(call, user_id=call.command.user_id, project_id=call.value.id)


def _add_of_project_grant(call: Call) -> UserGrant:
    user = call.services.storage.users.find(call.command.user_id)
    if user is None or user.organization_id != call.value.organization_id:
        raise Invalid({"user_id": say("There is no such user.")})
    return _added(call, user_id=user.id, project_id=call.value.project_id)


def _added(call: Call, *, user_id: str, project_id: str) -> UserGrant:
    command = AddUserGrant(user_id=user_id, project_id=project_id, roles=call.command.roles)
    return UserGrant.of(call.services.user_grants.add(command, by=call.by))


def _show(call: Call) -> UserGrant:
    return UserGrant.of(call.value)


def _change(call: Call) -> UserGrant:
    changed = call.services.user_grants.change(
        call.value.id, call.command, by=call.by, expected_version=call.expected_version
    )
    return UserGrant.of(changed)


def _deactivate(call: Call) -> UserGrant:
    return UserGrant.of(call.services.user_grants.deactivate(call.value.id, by=call.by))


def _reactivate(call: Call) -> UserGrant:
    return UserGrant.of(call.services.user_grants.reactivate(call.value.id, by=call.by))


def _remove(call: Call) -> None:
    call.services.user_grants.remove(call.value.id, by=call.by)


def _lists(name: str, path: str, summary: str, target: Callable[[Request], Target], handle: Any) -> Operation:
    return Operation(
        name=name,
        method="GET",
        path=path,
        summary=summary,
        permission="user_grant.read",
        target=target,
        handle=handle,
        answers=UserGrant,
        many=True,
        parameters=(*PAGED, STATES),
    )


def _adds(
    name: str, path: str, summary: str, target: Callable[[Request], Target], handle: Any, command: type[Command]
) -> Operation:
    return Operation(
        name=name,
        method="POST",
        path=path,
        summary=summary,
        description="A user of another organization than the project's needs a project grant that holds the roles.",
        permission="user_grant.write",
        target=target,
        handle=handle,
        command=command,
        answers=UserGrant,
        location="/user-grants/{id}",
    )


def _of_a(kind: str, prefix: str, words: str, target: Callable[[Request], Target]) -> Iterator[Operation]:
    """The operations on the grants of one user of a kind."""
    path = f"{prefix}/grants"
    yield _lists(f"list_{kind}_grants", path, f"Lists the grants of {words}, newest first.", target, _list_of_user)
    yield _adds(f"add_{kind}_grant", path, f"Gives {words} roles of a project.", target, _add_to_user, GrantToUser)


_OF_PROJECT = "/projects/{project}/user-grants"
_OF_PROJECT_GRANT = "/project-grants/{project_grant}/user-grants"
_PATH = "/user-grants/{user_grant}"
_WRITE: dict[str, Any] = {"permission": "user_grant.write", "target": targets.user_grant}

OPERATIONS = (
    *_of_a("user", "/users/{user}", "a person", targets.user),
    *_of_a("service_user", "/service-users/{service_user}", "a service user", targets.service_user),
    _lists(
        "list_project_user_grants",
        _OF_PROJECT,
        "Lists the user grants of a project, newest first.",
        targets.project,
        _list_of_project,
    ),
    _adds(
        "add_project_user_grant",
        _OF_PROJECT,
        "Gives a user roles of the project.",
        targets.project,
        _add_of_project,
        GrantOfProject,
    ),
    _lists(
        "list_project_grant_user_grants",
        _OF_PROJECT_GRANT,
        "Lists the user grants that derive from a project grant, newest first.",
        targets.project_grant,
        _list_of_project_grant,
    ),
    _adds(
        "add_project_grant_user_grant",
        _OF_PROJECT_GRANT,
        "Gives a user of the organization that holds the project grant some of its roles.",
        targets.project_grant,
        _add_of_project_grant,
        GrantOfProject,
    ),
    Operation(
        name="show_user_grant",
        method="GET",
        path=_PATH,
        summary="Shows a user grant.",
        permission="user_grant.read",
        target=targets.user_grant,
        handle=_show,
        answers=UserGrant,
    ),
    Operation(
        name="change_user_grant",
        method="PATCH",
        path=_PATH,
        summary="Replaces the roles of a user grant.",
        handle=_change,
        command=ChangeUserGrant,
        answers=UserGrant,
        **_WRITE,
    ),
    Operation(
        name="deactivate_user_grant",
        method="POST",
        path=f"{_PATH}/deactivate",
        summary="Deactivates a user grant: the user is without these roles until it is reactivated.",
        handle=_deactivate,
        answers=UserGrant,
        **_WRITE,
    ),
    Operation(
        name="reactivate_user_grant",
        method="POST",
        path=f"{_PATH}/reactivate",
        summary="Reactivates a user grant.",
        handle=_reactivate,
        answers=UserGrant,
        **_WRITE,
    ),
    Operation(
        name="remove_user_grant",
        method="DELETE",
        path=_PATH,
        summary="Takes the roles of a user grant away.",
        handle=_remove,
        **_WRITE,
    ),
)
