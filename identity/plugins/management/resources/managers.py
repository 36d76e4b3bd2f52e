"""Managers: who holds manager roles at the instance, an organization, a project or a project grant."""

from collections.abc import Callable, Iterator

from pyramid.request import Request

from identity.domain import managers
from identity.domain.permissions import Level
from identity.http import targets
from identity.http.targets import Target
from identity.plugins.management.operation import Call, Operation
from identity.plugins.management.representation import Representation, showing
from identity.plugins.management.resource import Resource
from identity.services.commands.managers import AddManager, ChangeManager


@showing(managers.Manager, without={"resource", "organization_id"})
class Manager(Representation):
    """The manager roles that a user holds at one resource. The id of the instance as a resource is `instance`."""

    id: str
    level: Level
    resource_id: str


def _shown(_call: Call, manager: managers.Manager) -> Manager:
    return Manager.of(manager, level=manager.resource.level, resource_id=manager.resource.id)


_MANAGERS = Resource(
    kind="manager",
    answers=Manager,
    path="/managers/{manager}",
    target=targets.manager,
    owner=targets.instance,
    show=_shown,
    delete="write",
)
_ANY_LEVEL = "The permission is that on managers of its level, such as `organization_manager.read`."


class OtherManagers(Representation):
    """How many managers a project grant has on the side of the other organization. Above 1,000 `count` is 1,000 and
    not exact."""

    count: int
    count_is_exact: bool


def _others(call: Call) -> OtherManagers:
    found = call.services.managers.others(call.resource, by=call.by)
    return OtherManagers(count=found.count, count_is_exact=found.exact)


_OTHERS = Resource(
    kind="other_managers",
    answers=OtherManagers,
    path="/project-grants/{project_grant}/other-managers",
    target=targets.project_grant,
)


def _at(level: str, prefix: str, name: str, target: Callable[[Request], Target]) -> Iterator[Operation]:
    """The operations on the managers of one level."""
    yield _MANAGERS.lists(
        f"Lists the managers of {name}, newest first.",
        lambda call: call.services.managers.page(call.resource, call.page, by=call.by),
        name=f"list_{level}_managers",
        path=f"{prefix}/managers",
        owner=target,
        states=False,
        permission=f"{level}_manager.read",
    )
    yield _MANAGERS.makes(
        "add",
        f"Gives a user manager roles at {name}.",
        AddManager,
        lambda call: call.services.managers.add(call.resource, call.command, by=call.by),
        name=f"add_{level}_manager",
        path=f"{prefix}/managers",
        owner=target,
        description="Nobody gives a role that holds a permission which they lack themselves.",
        permission=f"{level}_manager.write",
    )


OPERATIONS = (
    *_at("instance", "/instance", "the instance", targets.instance),
    *_at("organization", "/organizations/{organization}", "an organization", targets.organization),
    *_at("project", "/projects/{project}", "a project", targets.project),
    *_at("project_grant", "/project-grants/{project_grant}", "a project grant", targets.project_grant),
    _OTHERS.shows(
        "Counts the managers of a project grant that the other organization has chosen.",
        _others,
        name="count_other_project_grant_managers",
        description="The organization that owns the project and the one that holds the grant see their own managers.",
        permission="project_grant_manager.read",
    ),
    _MANAGERS.shows("Shows a manager.", description=_ANY_LEVEL),
    _MANAGERS.changes("Replaces the roles that a manager holds.", ChangeManager, description=_ANY_LEVEL),
    _MANAGERS.removes(
        "Takes all roles at the resource. The last active IAM_OWNER stays.", verb="remove", description=_ANY_LEVEL
    ),
)
