"""User grants: roles of projects, given to users."""

from collections.abc import Callable, Iterator
from typing import Any

from pyramid.request import Request

from identity.domain import projects
from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy
from identity.http import route_contexts
from identity.http.route_contexts import RouteContext
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.operation import Operation, OperationCall
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands import Command
from identity.services.commands.field_types import RoleKey
from identity.services.commands.user_grants import AddUserGrant, ChangeUserGrant
from identity.storage.paging import ResultPage


@representation_fields(projects.UserGrant)
class UserGrantRepresentation(Representation):
    """Roles of a project, given to a user. Where they derive from a project grant, this is named."""


class AddGrantToUserRequest(Command):
    """Give the user roles of a project."""

    project_id: str
    roles: frozenset[RoleKey] = frozenset()


class AddGrantToProjectRequest(Command):
    """Give a user roles of the project."""

    user_id: str
    roles: frozenset[RoleKey] = frozenset()


def _list_user_grants(call: OperationCall) -> ResultPage[Any]:
    return call.filter_page(call.services.storage.user_grants.page("user_id", call.entity.id, call.page))


def _add_grant_to_user(call: OperationCall) -> Any:
    return _add_user_grant(call, user_id=call.entity.id, project_id=call.command.project_id)


def _add_project_user_grant(call: OperationCall) -> Any:
    return _add_user_grant(call, user_id=call.command.user_id, project_id=call.entity.id)


def _add_derived_user_grant(call: OperationCall) -> Any:
    user = call.services.storage.users.find(call.command.user_id)
    if user is None or user.organization_id != call.entity.organization_id:
        raise Invalid({"user_id": gettext_lazy("There is no such user.")})
    return _add_user_grant(call, user_id=user.id, project_id=call.entity.project_id)


def _add_user_grant(call: OperationCall, *, user_id: str, project_id: str) -> Any:
    command = AddUserGrant(user_id=user_id, project_id=project_id, roles=call.command.roles)
    return call.services.user_grants.add(command, principal=call.principal)


_GRANTS = ApiResource(
    kind="user_grant",
    representation=UserGrantRepresentation,
    path="/user-grants/{user_grant}",
    context_factory=route_contexts.user_grant_context,
    parent_context_factory=route_contexts.project_context,
    delete_permission="write",
)


def _source_operations(
    kind: str,
    path: str,
    summaries: tuple[str, str],
    target: Callable[[Request], RouteContext],
    fetch: Callable[[OperationCall], Any],
    add: Callable[[OperationCall], Any],
    command: type[Command],
) -> Iterator[Operation]:
    """List and create operations below one path."""
    yield _GRANTS.list_operation(summaries[0], fetch, name=f"list_{kind}s", path=path, owner=target)
    yield _GRANTS.create_operation(
        "add",
        summaries[1],
        command,
        add,
        name=f"add_{kind}",
        path=path,
        owner=target,
        description="A user of another organization than the project's needs a project grant that holds the roles.",
    )


def _user_operations(kind: str, grantee: str, target: Callable[[Request], RouteContext]) -> Iterator[Operation]:
    """List and create operations for one kind of user."""
    summaries = f"Lists the grants of {grantee}, newest first.", f"Gives {grantee} roles of a project."
    path = f"/{kind.replace('_', '-')}s/{{{kind}}}/grants"
    return _source_operations(
        f"{kind}_grant", path, summaries, target, _list_user_grants, _add_grant_to_user, AddGrantToUserRequest
    )


OPERATIONS = (
    *_user_operations("user", "a person", route_contexts.user_context),
    *_user_operations("service_user", "a service user", route_contexts.service_user_context),
    *_source_operations(
        "project_user_grant",
        "/projects/{project}/user-grants",
        ("Lists the user grants of a project, newest first.", "Gives a user roles of the project."),
        route_contexts.project_context,
        lambda call: call.services.user_grants.page_by_project(call.entity.id, call.page, principal=call.principal),
        _add_project_user_grant,
        AddGrantToProjectRequest,
    ),
    *_source_operations(
        "project_grant_user_grant",
        "/project-grants/{project_grant}/user-grants",
        (
            "Lists the user grants that derive from a project grant, newest first.",
            "Gives a user of the organization that holds the project grant some of its roles.",
        ),
        route_contexts.project_grant_context,
        lambda call: call.services.user_grants.page_by_project_grant(
            call.entity.id, call.page, principal=call.principal
        ),
        _add_derived_user_grant,
        AddGrantToProjectRequest,
    ),
    _GRANTS.get_operation("Shows a user grant."),
    _GRANTS.update_operation("Replaces the roles of a user grant.", ChangeUserGrant),
    _GRANTS.deactivate_operation("Deactivates a user grant: the user is without these roles until it is reactivated."),
    _GRANTS.reactivate_operation("Reactivates a user grant."),
    _GRANTS.delete_operation("Takes the roles of a user grant away.", verb="remove"),
)
