"""Managers in the desired state."""

from functools import partial

from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.services.commands.desired_state import ManagerSpec
from identity.services.commands.managers import AddManager, ChangeManager
from identity.services.desired_state.reconciler import ChangeAction, Reconciler, describe_differences, diff_spec
from identity.storage.paging import iterate_rows

_MANAGER = "manager"


def ensure_managers(
    build: Reconciler,
    path: str,
    described: tuple[ManagerSpec, ...] | None,
    resource: Resource,
    users_of: Organization | None,
    where: str,
) -> None:
    """The managers of a resource; names without a domain mean users of the organization."""
    if described is None:
        return
    managers = build.services.managers
    build.services.access_control.require(build.principal, f"{resource.key.level}_manager.write", resource)
    for number, spec in enumerate(described):
        if spec.has_ended(build.services.now):
            continue
        _ensure_manager(build, f"{path}.managers[{number}]", spec, resource, users_of, where)
    build.prune_rows(
        f"{path}.managers",
        _MANAGER,
        lambda: iterate_rows(partial(managers.page, resource, principal=build.principal)),
        key=lambda manager: (manager.id,),
        name=lambda manager: f"{build.find_login_name(manager.user_id)} of {where}",
        remove=lambda manager: managers.remove(manager.id, principal=build.principal),
    )


def _ensure_manager(
    build: Reconciler, path: str, described: ManagerSpec, resource: Resource, users_of: Organization | None, where: str
) -> None:
    managers = build.services.managers
    subject = build.resolve_user(path, described.user, users_of)
    if subject is None:
        with build.collect_problems(path):
            managers.require_grantable_roles(resource, described.roles, build.principal, described.until)
        return
    name, roles = f"{subject.login_name} of {where}", ", ".join(sorted(described.roles))
    with build.collect_problems(path):
        present = build.storage.managers.list_for_user(subject.user.id)
        manager = next((manager for manager in present if manager.resource == resource.key), None)
        if manager is None:
            manager = managers.add(
                resource,
                AddManager(user_id=subject.user.id, roles=described.roles, until=described.until),
                principal=build.principal,
            )
            build.record_change(ChangeAction.ADD, _MANAGER, name, roles)
        if not build.mark_seen(path, _MANAGER, manager.id):
            return
        differences = diff_spec(described, manager, ChangeManager)
        if differences:
            managers.change(manager.id, ChangeManager(**differences), principal=build.principal)
            build.record_change(ChangeAction.CHANGE, _MANAGER, name, describe_differences(manager, differences))
