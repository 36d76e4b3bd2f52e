"""User grants: roles of projects, granted to users."""

from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy
from identity.domain.projects import Project, ProjectGrant, UserGrant
from identity.domain.users import HumanUser, ServiceUser
from identity.plugins.management.api_resource import EntityApiResource
from identity.plugins.management.entity_paths import PROJECT, PROJECT_GRANT, SERVICE_USER, USER, USER_GRANT
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands import Command
from identity.services.commands.field_types import RoleKey, Timestamp
from identity.services.commands.user_grants import AddUserGrant, ChangeUserGrant
from identity.storage.paging import ResultPage


@representation_fields(UserGrant)
class UserGrantRepresentation(Representation):
    """Roles of a project, granted to a user. If they derive from a project grant, it is named.

    The roles end by themselves at the moment `until`; null means that they have no end. A project grant that ends
    earlier ends them earlier."""


class AddGrantToUserRequest(Command):
    """Give the user roles of a project."""

    project_id: str
    roles: frozenset[RoleKey] = frozenset()
    until: Timestamp | None = None


class AddGrantToProjectRequest(Command):
    """Give a user roles of the project."""

    user_id: str
    roles: frozenset[RoleKey] = frozenset()
    until: Timestamp | None = None


def _list_user_grants(call: OperationCall[HumanUser] | OperationCall[ServiceUser]) -> ResultPage[UserGrant]:
    return call.filter_page(call.services.storage.user_grants.page("user_id", call.entity.id, call.page))


def _add_grant_to_user(
    call: OperationCall[HumanUser] | OperationCall[ServiceUser], command: AddGrantToUserRequest
) -> UserGrant:
    added = AddUserGrant(
        user_id=call.entity.id, project_id=command.project_id, roles=command.roles, until=command.until
    )
    return call.services.user_grants.add(added, principal=call.principal)


def _add_project_user_grant(call: OperationCall[Project], command: AddGrantToProjectRequest) -> UserGrant:
    added = AddUserGrant(user_id=command.user_id, project_id=call.entity.id, roles=command.roles, until=command.until)
    return call.services.user_grants.add(added, principal=call.principal)


def _add_derived_user_grant(call: OperationCall[ProjectGrant], command: AddGrantToProjectRequest) -> UserGrant:
    user = call.services.storage.users.find(command.user_id)
    if user is None or user.organization_id != call.entity.organization_id:
        raise Invalid({"user_id": gettext_lazy("There is no such user.")})
    added = AddUserGrant(user_id=user.id, project_id=call.entity.project_id, roles=command.roles, until=command.until)
    return call.services.user_grants.add(added, principal=call.principal)


_GRANTS = EntityApiResource(
    "user_grant",
    UserGrantRepresentation,
    at=USER_GRANT,
    change_command=ChangeUserGrant,
    service=lambda services: services.user_grants,
)
_GRANT = "/user-grants/{id}"
_ADD_DESCRIPTION = "A user of an organization other than the project's needs a project grant that includes the roles."

OPERATIONS = (
    _GRANTS.list(USER / "grants", "Lists the grants of a person, newest first.", _list_user_grants),
    _GRANTS.create(
        "add_user_grant",
        USER / "grants",
        "Grants a person roles of a project.",
        AddGrantToUserRequest,
        _add_grant_to_user,
        location=_GRANT,
        description=_ADD_DESCRIPTION,
    ),
    _GRANTS.list(
        SERVICE_USER / "grants",
        "Lists the grants of a service user, newest first.",
        _list_user_grants,
        name="list_service_user_grants",
    ),
    _GRANTS.create(
        "add_service_user_grant",
        SERVICE_USER / "grants",
        "Grants a service user roles of a project.",
        AddGrantToUserRequest,
        _add_grant_to_user,
        location=_GRANT,
        description=_ADD_DESCRIPTION,
    ),
    _GRANTS.list(
        PROJECT / "user-grants",
        "Lists the user grants of a project, newest first.",
        lambda call: call.services.user_grants.page("project_id", call.entity.id, call.page, principal=call.principal),
        name="list_project_user_grants",
    ),
    _GRANTS.create(
        "add_project_user_grant",
        PROJECT / "user-grants",
        "Grants a user roles of the project.",
        AddGrantToProjectRequest,
        _add_project_user_grant,
        location=_GRANT,
        description=_ADD_DESCRIPTION,
    ),
    _GRANTS.list(
        PROJECT_GRANT / "user-grants",
        "Lists the user grants that derive from a project grant, newest first.",
        lambda call: call.services.user_grants.page(
            "project_grant_id", call.entity.id, call.page, principal=call.principal
        ),
        name="list_project_grant_user_grants",
    ),
    _GRANTS.create(
        "add_project_grant_user_grant",
        PROJECT_GRANT / "user-grants",
        "Grants a user of the organization that holds the project grant some of its roles.",
        AddGrantToProjectRequest,
        _add_derived_user_grant,
        location=_GRANT,
        description=_ADD_DESCRIPTION,
    ),
    _GRANTS.show("Shows a user grant."),
    _GRANTS.update("Replaces the roles of a user grant, or their end."),
    _GRANTS.deactivate("Deactivates a user grant: the user loses these roles until it is reactivated."),
    _GRANTS.reactivate("Reactivates a user grant."),
    _GRANTS.remove("Removes a user grant with its roles.", verb="remove", permission="user_grant.write"),
)
