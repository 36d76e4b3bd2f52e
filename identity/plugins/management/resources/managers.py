"""Managers: who has manager roles at the instance, an organization, a project or a project grant."""

from collections.abc import Iterator
from typing import Any

from identity.domain.managers import Manager
from identity.domain.permissions import ManagerLevel
from identity.domain.projects import ProjectGrant
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import INSTANCE, MANAGER, ORGANIZATION, PROJECT, PROJECT_GRANT
from identity.plugins.management.operation import EntityPath, Operation, OperationCall
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands.managers import AddManager, ChangeManager


@representation_fields(Manager, without={"resource", "organization_id"})
class ManagerRepresentation(Representation):
    """The manager roles that a user holds at one resource. The id of the instance as a resource is `instance`.

    The roles end by themselves at the moment `until`; null means that they have no end."""

    id: str
    level: ManagerLevel
    resource_id: str


class OtherManagersRepresentation(Representation):
    """How many managers a project grant has on the side of the other organization. Above 1,000 `count` is 1,000 and
    not exact."""

    count: int
    count_is_exact: bool


def _represent(_call: OperationCall[Any], manager: Manager) -> ManagerRepresentation:
    return ManagerRepresentation.from_value(manager, level=manager.resource.level, resource_id=manager.resource.id)


def _count_other_managers(call: OperationCall[ProjectGrant]) -> OtherManagersRepresentation:
    row_total = call.services.managers.count_hidden(call.resource, principal=call.principal)
    return OtherManagersRepresentation(count=row_total.count, count_is_exact=row_total.is_exact)


_MANAGERS = ApiResource("manager", ManagerRepresentation, _represent)
_ANY_LEVEL = "The permission depends on the level, for example `organization_manager.read`."


def _level_operations(level: str, name: str, at: EntityPath[Any]) -> Iterator[Operation]:
    yield _MANAGERS.list(
        at,
        f"Lists the managers of {name}, newest first.",
        lambda call: call.services.managers.page(call.resource, call.page, principal=call.principal),
        has_states=False,
        name=f"list_{level}_managers",
        permission=f"{level}_manager.read",
    )
    yield _MANAGERS.create(
        f"add_{level}_manager",
        at,
        f"Grants a user manager roles at {name}.",
        AddManager,
        lambda call, command: call.services.managers.add(call.resource, command, principal=call.principal),
        location="/managers/{id}",
        description="The caller cannot grant a role with a permission that they lack, nor for longer than they "
        "have it.",
        permission=f"{level}_manager.write",
    )


OPERATIONS = (
    *_level_operations("instance", "the instance", INSTANCE / "instance/managers"),
    *_level_operations("organization", "an organization", ORGANIZATION / "managers"),
    *_level_operations("project", "a project", PROJECT / "managers"),
    *_level_operations("project_grant", "a project grant", PROJECT_GRANT / "managers"),
    _MANAGERS.get(
        PROJECT_GRANT / "other-managers",
        "Counts the managers that the other organization has chosen for a project grant.",
        _count_other_managers,
        name="count_other_project_grant_managers",
        description="The organization that owns the project and the one that holds the grant each see "
        "their own managers.",
        permission="project_grant_manager.read",
        representation=OtherManagersRepresentation,
    ),
    _MANAGERS.get(MANAGER, "Shows a manager.", lambda call: call.entity, description=_ANY_LEVEL),
    _MANAGERS.change(
        MANAGER,
        "Replaces the roles of a manager, or their end.",
        ChangeManager,
        lambda call, command: call.services.managers.change(
            call.entity.id, command, principal=call.principal, expected_version=call.expected_version
        ),
        description=_ANY_LEVEL,
    ),
    _MANAGERS.delete(
        "remove_manager",
        MANAGER,
        "Removes all of the user's roles at the resource. The last active IAM_OWNER cannot be removed.",
        lambda call: call.services.managers.remove(call.entity.id, principal=call.principal),
        description=_ANY_LEVEL,
        permission="manager.write",
    ),
)
