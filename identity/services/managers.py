"""Managers: give, change and take manager roles."""

from collections.abc import Callable, Mapping

from identity.domain.authentication import PASSWORD
from identity.domain.errors import Conflict, Invalid, NotFound
from identity.domain.managers import Manager, Role
from identity.domain.permissions import INSTANCE_KEY, Level, Resource
from identity.domain.policies import SecondFactor
from identity.domain.projects import ProjectGrant
from identity.domain.users import HumanUser, Subject
from identity.domain.words import say
from identity.services.access import Access, Principal
from identity.services.changes import TransactionState
from identity.services.choices import Choices
from identity.services.commands.managers import AddManager, ChangeManager
from identity.services.factors import Factors
from identity.services.grant_sides import OfGrants
from identity.services.holders import Holders
from identity.services.policies import Policies
from identity.services.sessions import Sessions
from identity.storage.backend import Storage
from identity.storage.paging import FIRST_PAGE, Page, PageRequest, Total

OWNER = "IAM_OWNER"
PROJECT_OWNER = "PROJECT_OWNER"

_COUNTED = PageRequest(limit=1, counted=True)
_OF_NEITHER = say("Choose a user of the organization that owns the project, or of the one that holds the grant.")
_NO_WAY = say(
    "This person has no way to sign in that the instance allows. They set one up first: a password of their own, a"
    " passkey, or an account at a provider that the instance manages."
)
_KNOWN = say("Somebody else knows the password of this person. They sign in and choose their own first.")


class Managers(OfGrants[Manager]):
    """Nobody grants more than they hold, and the last IAM_OWNER stays.

    Whoever gets their first role at the instance has to be able to sign in by its rules. What was opened as them by
    others' rules ends. At a project grant each of the two organizations chooses among its own people, and sees those
    alone.
    """

    kind = "manager"
    store = "managers"
    taken = {"user_id": say("This user is a manager here already. Change its roles.")}  # noqa: RUF012

    personal = frozenset({"id", "user_id"})
    shared = False

    def __init__(
        self,
        state: TransactionState,
        access: Access,
        choices: Choices,
        factors: Factors,
        holders: Holders,
        policies: Policies,
        sessions: Sessions,
        roles: Mapping[str, Role],
        has_way: Callable[[Subject, Callable[[str], bool]], bool],
    ) -> None:
        super().__init__(state, access)
        self._choices, self._factors, self._holders, self._policies = choices, factors, holders, policies
        self._sessions, self._roles, self._has_way = sessions, roles, has_way

    def page(self, resource: Resource, request: PageRequest = FIRST_PAGE, *, by: Principal) -> Page[Manager]:
        """The managers of the resource whom the caller may know, newest first."""
        return self._storage.managers.page(resource.key, request, within=self._access.sides(by, resource))

    def others(self, resource: Resource, *, by: Principal) -> Total:
        """How many managers the resource has besides those whom the caller may know."""
        sides = self._access.sides(by, resource)
        if sides is None:
            return Total(0)
        stored = self._storage.managers
        every = stored.page(resource.key, _COUNTED).total or Total(0)
        known = stored.page(resource.key, _COUNTED, within=sides).total or Total(0)
        return Total(every.count - known.count, every.exact)

    def are_known(self, manager: Manager, *, by: Principal) -> bool:
        """True unless the manager is of the other side of a project grant."""
        sides = self._access.sides(by, self._access.resource(manager.resource))
        return sides is None or self._home(manager.user_id) in sides

    def role(self, name: str) -> Role:
        """The role of this name. Raises Invalid, naming the roles there are."""
        role = self._roles.get(name)
        if role is None:
            fitting = ", ".join(sorted(self._roles))
            raise Invalid({"role": say("There is no role {name}. Choose from {names}.", name=name, names=fitting)})
        return role

    def add(self, resource: Resource, command: AddManager, *, by: Principal, recovering: bool = False) -> Manager:
        """A user's roles at the resource; with ``recovering`` on the machine whoever could not sign in gets them too.

        Raises Invalid for an unknown user or role, a role of another level, or a user who is a manager there already,
        or belongs to neither side of a project grant; Denied for a role beyond the caller's own. A user whom the caller
        may not see is unknown.
        """
        user = self._storage.users.find(command.user_id)
        if user is None or not self._access.sees(by, user.organization_id):
            raise Invalid({"user_id": say("There is no such user.")})
        if resource.holder is not None and user.organization_id not in (resource.organization_id, resource.holder.id):
            raise Invalid({"user_id": _OF_NEITHER})
        self.check(resource, command.roles, by)
        raised = self._raised(user.id, resource)
        if raised is not None and not recovering:
            self._refuse_shut_out(raised)
        manager = self._given(command.user_id, resource, command.roles)
        if raised is not None:
            self._holders.forget(user.id)
            self._sessions.end_access(raised)
        return manager

    def ends(self, user_id: str, resource: Resource) -> int:
        """How many sessions of a user end who gets a role at the resource."""
        return 0 if self._raised(user_id, resource) is None else len(self._sessions.of_user(user_id))

    def can_sign_in(self, subject: Subject) -> bool:
        """True if the person has a way to sign in by the instance's rules, as who holds a role there needs one."""
        policy, user_id = self._policies.of_instance(), subject.user.id
        own = self._storage.users.find_password(user_id) is not None
        if own and self._policies.allow_at_instance(PASSWORD):
            return True
        alone = self._choices.alone if policy.second_factor is not SecondFactor.OFF else frozenset[str]()
        had = {one.factor for one in self._factors.of(user_id)}
        if any(self._policies.allow_at_instance(one) for one in alone & had):
            return True
        return self._has_way(subject, self._policies.allow_at_instance)

    def shut_out(self) -> tuple[Subject, ...]:
        """The active people with a role at the instance who have no way to sign in by its rules."""
        found = self._storage.users.find_subjects(self._holders.all()).values()
        people = (one for one in found if one.active and isinstance(one.user, HumanUser))
        return tuple(one for one in people if not self.can_sign_in(one))

    def _raised(self, user_id: str, resource: Resource) -> Subject | None:
        """The user, if the resource is the instance and they hold no role there yet."""
        if resource.key != INSTANCE_KEY or self._holders.is_one(user_id):
            return None
        return self._storage.users.find_subject(user_id)

    def _refuse_shut_out(self, subject: Subject) -> None:
        if not isinstance(subject.user, HumanUser):
            return
        stored = self._storage.users.find_password(subject.user.id)
        if stored is not None and stored.must_change:
            raise Invalid({"roles": _KNOWN})
        if not self.can_sign_in(subject):
            raise Invalid({"roles": _NO_WAY})

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
        if not self.are_known(thing, by=by):
            raise NotFound(self._noun, thing.id)
        self._access.require_no_role_above(by, thing.user_id)

    def _refuse_end(self, thing: Manager) -> None:
        if OWNER in thing.roles:
            refuse_last_owner(self._storage, lambda owner: owner.id == thing.id)

    def _after_removal(self, thing: Manager) -> None:
        self._holders.forget(thing.user_id)

    def _given(self, user_id: str, resource: Resource, roles: frozenset[str]) -> Manager:
        manager = self._made(
            Manager, user_id=user_id, resource=resource.key, roles=roles, organization_id=resource.organization_id
        )
        self._add("manager.added", manager, self._organization_id(manager), of=("user", user_id))
        return manager

    def _grant_of(self, thing: Manager) -> ProjectGrant | None:
        at_grant = thing.resource.level is Level.PROJECT_GRANT
        return self._storage.project_grants.find(thing.resource.id) if at_grant else None

    def _organization_id(self, thing: Manager) -> str | None:
        grant = self._grant_of(thing)
        of_holder = grant is not None and self._home(thing.user_id) == grant.organization_id
        return grant.organization_id if grant is not None and of_holder else thing.organization_id

    def _home(self, user_id: str) -> str | None:
        user = self._storage.users.find(user_id)
        return None if user is None else user.organization_id

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
