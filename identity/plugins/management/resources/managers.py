"""Managers: who holds manager roles at the instance, an organization, a project or a project grant."""

from collections.abc import Callable, Iterator

from pyramid.request import Request

from identity.domain import managers
from identity.domain.permissions import ManagerLevel
from identity.http import route_contexts
from identity.http.route_contexts import RouteContext
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.operation import Operation, OperationCall
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands.managers import AddManager, ChangeManager


@representation_fields(managers.Manager, without={"resource", "organization_id"})
class ManagerRepresentation(Representation):
    """The manager roles that a user holds at one resource. The id of the instance as a resource is `instance`."""

    id: str
    level: ManagerLevel
    resource_id: str


def _represent(_call: OperationCall, manager: managers.Manager) -> ManagerRepresentation:
    return ManagerRepresentation.from_value(manager, level=manager.resource.level, resource_id=manager.resource.id)


_MANAGERS = ApiResource(
    kind="manager",
    representation=ManagerRepresentation,
    path="/managers/{manager}",
    context_factory=route_contexts.manager_context,
    parent_context_factory=route_contexts.instance_context,
    represent=_represent,
    delete_permission="write",
)
_ANY_LEVEL = "The permission is that on managers of its level, such as `organization_manager.read`."


class OtherManagersRepresentation(Representation):
    """How many managers a project grant has on the side of the other organization. Above 1,000 `count` is 1,000 and
    not exact."""

    count: int
    count_is_exact: bool


def _count_other_managers(call: OperationCall) -> OtherManagersRepresentation:
    row_total = call.services.managers.count_hidden(call.resource, principal=call.principal)
    return OtherManagersRepresentation(count=row_total.count, count_is_exact=row_total.is_exact)


_OTHER_MANAGERS = ApiResource(
    kind="other_managers",
    representation=OtherManagersRepresentation,
    path="/project-grants/{project_grant}/other-managers",
    context_factory=route_contexts.project_grant_context,
)


def _level_operations(
    level: str, prefix: str, name: str, target: Callable[[Request], RouteContext]
) -> Iterator[Operation]:
    yield _MANAGERS.list_operation(
        f"Lists the managers of {name}, newest first.",
        lambda call: call.services.managers.page(call.resource, call.page, principal=call.principal),
        name=f"list_{level}_managers",
        path=f"{prefix}/managers",
        owner=target,
        states=False,
        permission=f"{level}_manager.read",
    )
    yield _MANAGERS.create_operation(
        "add",
        f"Gives a user manager roles at {name}.",
        AddManager,
        lambda call: call.services.managers.add(call.resource, call.command, principal=call.principal),
        name=f"add_{level}_manager",
        path=f"{prefix}/managers",
        owner=target,
        description="Nobody gives a role that holds a permission which they lack themselves.",
        permission=f"{level}_manager.write",
    )


OPERATIONS = (
    *_level_operations("instance", "/instance", "the instance", route_contexts.instance_context),
    *_level_operations(
        "organization", "/organizations/{organization}", "an organization", route_contexts.organization_context
    ),
    *_level_operations("project", "/projects/{project}", "a project", route_contexts.project_context),
    *_level_operations(
        "project_grant", "/project-grants/{project_grant}", "a project grant", route_contexts.project_grant_context
    ),
    _OTHER_MANAGERS.get_operation(
        "Counts the managers of a project grant that the other organization has chosen.",
        _count_other_managers,
        name="count_other_project_grant_managers",
        description="The organization that owns the project and the one that holds the grant see their own managers.",
        permission="project_grant_manager.read",
    ),
    _MANAGERS.get_operation("Shows a manager.", description=_ANY_LEVEL),
    _MANAGERS.update_operation("Replaces the roles that a manager holds.", ChangeManager, description=_ANY_LEVEL),
    _MANAGERS.delete_operation(
        "Takes all roles at the resource. The last active IAM_OWNER stays.", verb="remove", description=_ANY_LEVEL
    ),
)
