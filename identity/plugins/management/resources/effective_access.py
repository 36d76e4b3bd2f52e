"""Effective access: what a user can do, where, and through what."""

from collections.abc import Iterator
from typing import Any

from identity.domain.effective_access import AccessEntry, AccessKind, AccessProblem
from identity.domain.permissions import ManagerLevel
from identity.domain.users import HumanUser, ServiceUser, Subject
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import SERVICE_USER, USER
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import DateTime, Representation


class HeldRoleRepresentation(Representation):
    """The key of a role, and its name; empty for a role that no longer exists."""

    key: str
    name: str


class AccessEntryRepresentation(Representation):
    """Roles of a user in one place. The id is that of the manager or user grant, or, with `group_id`, of the manager
    roles or project roles of that group.

    `level` and `resource_id` name the place. `project_grant_id` is set if the roles of a user grant derive from a
    project grant; `withheld_roles` are those that it does not include. `until` is the earlier end of both. `problem`
    says why the roles have no effect; null if they count."""

    kind: AccessKind
    id: str
    level: ManagerLevel
    resource_id: str
    resource_name: str
    organization_id: str | None
    roles: list[HeldRoleRepresentation]
    withheld_roles: list[str]
    project_grant_id: str | None
    group_id: str | None
    until: DateTime | None
    created_at: DateTime
    problem: AccessProblem | None


def _represent(_call: OperationCall[Any], entry: AccessEntry) -> AccessEntryRepresentation:
    return AccessEntryRepresentation.from_value(
        entry,
        level=entry.resource.level,
        resource_id=entry.resource.id,
        organization_id=entry.owner_id,
        roles=[HeldRoleRepresentation.from_value(role) for role in entry.roles],
        group_id=None if entry.group is None else entry.group.id,
        withheld_roles=list(entry.withheld_roles),
    )


def _list_entries(call: OperationCall[HumanUser] | OperationCall[ServiceUser]) -> Iterator[AccessEntry]:
    organization = call.services.organizations.get(call.entity.organization_id)
    return iter(
        call.services.effective_access.list_entries(Subject(call.entity, organization), principal=call.principal)
    )


_ACCESS = ApiResource[AccessEntry]("access_entry", AccessEntryRepresentation, _represent)
_DESCRIPTION = (
    "Manager roles that you may see, and, with `user_grant.read` in the user's organization, project roles: also those"
    " that have no effect, with the reason. Roles through groups need `group.read` there."
)

OPERATIONS = (
    _ACCESS.list(
        USER / "access",
        "Lists what a person can do, where, and through what.",
        _list_entries,
        name="list_user_access",
        permission="user.read",
        is_paged=False,
        description=_DESCRIPTION,
    ),
    _ACCESS.list(
        SERVICE_USER / "access",
        "Lists what a service user can do, where, and through what.",
        _list_entries,
        name="list_service_user_access",
        permission="service_user.read",
        is_paged=False,
        description=_DESCRIPTION,
    ),
)
