"""Managers: who holds manager roles at the instance, an organization, a project or a project grant."""

from collections.abc import Callable, Iterator
from typing import Any

from pyramid.request import Request

from identity.domain import managers
from identity.domain.permissions import Level
from identity.http import targets
from identity.http.targets import MANAGER, Target
from identity.plugins.management.operation import PAGED, Call, Operation
from identity.plugins.management.representation import Versioned, Words
from identity.services.commands.managers import AddManager, ChangeManager
from identity.storage.paging import Page


class Manager(Versioned):
    """The manager roles that a user holds at one resource. The id of the instance as a resource is `instance`."""

    user_id: str
    level: Level
    resource_id: str
    roles: Words


def _shown(manager: managers.Manager) -> Manager:
    return Manager.of(manager, level=manager.resource.level, resource_id=manager.resource.id)


def _list(call: Call) -> Page[Manager]:
    page = call.services.managers.page(call.resource, call.page)
    return page.showing(map(_shown, page))


def _add(call: Call) -> Manager:
    return _shown(call.services.managers.add(call.resource, call.command, by=call.by))


def _show(call: Call) -> Manager:
    return _shown(call.value)


def _change(call: Call) -> Manager:
    changed = call.services.managers.change(
        call.value.id, call.command, by=call.by, expected_version=call.expected_version
    )
    return _shown(changed)


def _remove(call: Call) -> None:
    call.services.managers.remove(call.value.id, by=call.by)


def _at(level: str, prefix: str, name: str, target: Callable[[Request], Target]) -> Iterator[Operation]:
    """The operations on the managers of one level."""
    yield Operation(
        name=f"list_{level}_managers",
        method="GET",
        path=f"{prefix}/managers",
        summary=f"Lists the managers of {name}, newest first.",
        permission=f"{level}_manager.read",
        target=target,
        handle=_list,
        answers=Manager,
        many=True,
        parameters=PAGED,
    )
    yield Operation(
        name=f"add_{level}_manager",
        method="POST",
        path=f"{prefix}/managers",
        summary=f"Gives a user manager roles at {name}.",
        description="Nobody gives a role that holds a permission which they lack themselves.",
        permission=f"{level}_manager.write",
        target=target,
        handle=_add,
        command=AddManager,
        answers=Manager,
        location="/managers/{id}",
    )


_ONE: dict[str, Any] = {
    "path": "/managers/{manager}",
    "target": targets.manager,
    "description": "The permission is that on managers of its level, such as `organization_manager.read`.",
}

OPERATIONS = (
    *_at("instance", "/instance", "the instance", targets.instance),
    *_at("organization", "/organizations/{organization}", "an organization", targets.organization),
    *_at("project", "/projects/{project}", "a project", targets.project),
    *_at("project_grant", "/project-grants/{project_grant}", "a project grant", targets.project_grant),
    Operation(
        name="show_manager",
        method="GET",
        summary="Shows a manager.",
        permission=f"{MANAGER}.read",
        handle=_show,
        answers=Manager,
        **_ONE,
    ),
    Operation(
        name="change_manager",
        method="PATCH",
        summary="Replaces the roles that a manager holds.",
        permission=f"{MANAGER}.write",
        handle=_change,
        command=ChangeManager,
        answers=Manager,
        **_ONE,
    ),
    Operation(
        name="remove_manager",
        method="DELETE",
        summary="Takes all roles at the resource. The last active IAM_OWNER stays.",
        permission=f"{MANAGER}.write",
        handle=_remove,
        **_ONE,
    ),
)
