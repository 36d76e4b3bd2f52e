"""Managers: give, change and take manager roles."""

from collections.abc import Callable, Mapping

from identity.domain.errors import Conflict, Invalid
from identity.domain.managers import Manager, Role
from identity.domain.permissions import INSTANCE_KEY, Resource
from identity.domain.words import say
from identity.services.access import Access, Principal
from identity.services.commands.managers import AddManager, ChangeManager
from identity.services.lifecycle import Entities
from identity.storage.backend import Storage
from identity.storage.paging import FIRST_PAGE, Page, PageRequest

OWNER = "IAM_OWNER"
PROJECT_OWNER = "PROJECT_OWNER"


class Managers(Entities[Manager]):
    """Nobody grants more than they hold, and the last IAM_OWNER stays."""

    kind = "manager"
    store = "managers"
    taken = {"user_id": say("This user is a manager here already. Change its roles.")}  # noqa: RUF012

    _access: Access
    _roles: Mapping[str, Role]

    def page(self, resource: Resource, request: PageRequest = FIRST_PAGE) -> Page[Manager]:
        """The managers of the resource, newest first."""
        return self._storage.managers.page(resource.key, request)

    def role(self, name: str) -> Role:
        """The role of this name. Raises Invalid, naming the roles there are."""
        role = self._roles.get(name)
        if role is None:
            fitting = ", ".join(sorted(self._roles))
            raise Invalid({"role": say("There is no role {name}. Choose from {names}.", name=name, names=fitting)})
        return role

    def add(self, resource: Resource, command: AddManager, *, by: Principal) -> Manager:
        """A user's roles at the resource.

        Raises Invalid for an unknown user or role, a role of another level, or a user who is a manager there already;
        Denied for a role beyond the caller's own. A user whom the caller may not see is unknown.
        """
        user = self._storage.users.find(command.user_id)
        if user is None or not self._access.sees(by, user.organization_id):
            raise Invalid({"user_id": say("There is no such user.")})
        self.check(resource, command.roles, by)
        return self._given(command.user_id, resource, command.roles)

    def add_creator(self, user_id: str, resource: Resource) -> Manager | None:
        """Whoever created a project as its PROJECT_OWNER; None if no plugin offers the role."""
        return self._given(user_id, resource, frozenset({PROJECT_OWNER})) if PROJECT_OWNER in self._roles else None

    def change(
        self, manager_id: str, command: ChangeManager, *, by: Principal, expected_version: int | None = None
    ) -> Manager:
        """The manager with other roles. Raises NotFound, Invalid, Denied; Conflict for the last owner."""
        before = self._governed(manager_id, by)
        resource = self._access.resource(before.resource)
        self.check(resource, command.roles, by)
        if OWNER not in command.roles:
            self._refuse_end(before)
        after = self._next(before, command, expected_version=expected_version)
        return self._keep("manager.changed", before, after)

    def _check(self, thing: Manager, by: Principal) -> None:
        self._access.require_not_above(by, thing.user_id)

    def _refuse_end(self, thing: Manager) -> None:
        if OWNER in thing.roles:
            refuse_last_owner(self._storage, lambda owner: owner.id == thing.id)

    def _given(self, user_id: str, resource: Resource, roles: frozenset[str]) -> Manager:
        organization_id = resource.organization_id
        manager = self._made(
            Manager, user_id=user_id, resource=resource.key, roles=roles, organization_id=organization_id
        )
        self._add("manager.added", manager, organization_id, of=("user", user_id))
        return manager

    def check(self, resource: Resource, names: frozenset[str], by: Principal) -> None:
        """Raise Invalid unless these are roles of the resource's level, and Denied for one beyond the caller's own."""
        for name in sorted(names):
            role = self._roles.get(name)
            if role is None or role.level is not resource.key.level:
                fitting = sorted(one.name for one in self._roles.values() if one.level is resource.key.level)
                sentence = say(
                    "{name} is no role of this level. Choose from {names}.", name=name, names=", ".join(fitting)
                )
                raise Invalid({"roles": sentence})
            self._access.require_grantable(by, role, resource)


def refuse_last_owner(storage: Storage, leaves: Callable[[Manager], bool]) -> None:
    """Raise Conflict if no active IAM_OWNER is left once those that ``leaves`` names are gone.

    The rows stay locked until the transaction ends: two that leave at once cannot both go.
    """
    owners = storage.managers.lock_holders(INSTANCE_KEY, OWNER)
    if owners and all(leaves(owner) for owner in owners):
        raise Conflict(say("This is the last active {role}. Make somebody else one first.", role=OWNER))
