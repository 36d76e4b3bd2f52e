"""Managers as described."""

from functools import partial

from identity.domain.managers import Manager
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.services.commands.descriptions import DescribedManager
from identity.services.commands.managers import AddManager, ChangeManager
from identity.services.described.build import Action, Build
from identity.storage.paging import every_row

_MANAGER = "manager"


def ensure_managers(
    build: Build,
    path: str,
    described: tuple[DescribedManager, ...] | None,
    resource: Resource,
    users_of: Organization | None,
    where: str,
) -> None:
    """The managers of a resource; names without a domain are those of users of the organization."""
    if described is None:
        return
    managers = build.services.managers
    build.services.access.require(build.by, f"{resource.key.level}_manager.write", resource)
    for number, one in enumerate(described):
        _ensure_manager(build, f"{path}.managers[{number}]", one, resource, users_of, where)
    build.prune(
        f"{path}.managers",
        _MANAGER,
        lambda: every_row(partial(managers.page, resource, by=build.by)),
        key=lambda manager: (_MANAGER, manager.id),
        name=lambda manager: f"{_login_name(build, manager)} of {where}",
        remove=lambda manager: managers.remove(manager.id, by=build.by),
    )


def _ensure_manager(
    build: Build, path: str, described: DescribedManager, resource: Resource, users_of: Organization | None, where: str
) -> None:
    managers = build.services.managers
    subject = build.user(path, described.user, users_of)
    if subject is None:
        with build.refusals_at(path):
            managers.check(resource, described.roles, build.by)
        return
    name, roles = f"{subject.login_name} of {where}", ", ".join(sorted(described.roles))
    with build.refusals_at(path):
        held = build.storage.managers.of_user(subject.user.id)
        manager = next((one for one in held if one.resource == resource.key), None)
        if manager is None:
            manager = managers.add(resource, AddManager(user_id=subject.user.id, roles=described.roles), by=build.by)
            build.note(Action.ADD, _MANAGER, name, roles)
        if not build.is_new(path, _MANAGER, manager.id):
            return
        if manager.roles != described.roles:
            managers.change(manager.id, ChangeManager(roles=described.roles), by=build.by)
            build.note(Action.CHANGE, _MANAGER, name, f"{', '.join(sorted(manager.roles))} → {roles}")


def _login_name(build: Build, manager: Manager) -> str:
    subject = build.storage.users.find_subject(manager.user_id)
    return manager.user_id if subject is None else subject.login_name
