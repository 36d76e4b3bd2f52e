"""Managers: give, change and take manager roles."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from identity.domain.authentication import Proof
from identity.domain.errors import Conflict, Invalid, NotFound
from identity.domain.expirations import NEVER
from identity.domain.groups import GroupManager
from identity.domain.managers import Manager, ManagerRole
from identity.domain.messages import gettext_lazy
from identity.domain.permissions import INSTANCE_KEY, ManagerLevel, Resource
from identity.domain.policies import SecondFactorRule
from identity.domain.projects import ProjectGrant
from identity.domain.users import Agent, HumanUser, Subject
from identity.services.access_control import Principal, merge_roles
from identity.services.base import refuse_until
from identity.services.capabilities import Capabilities
from identity.services.commands.managers import AddManager, ChangeManager
from identity.services.factors import FactorService
from identity.services.instance_managers import InstanceManagerService
from identity.services.policies import PolicyService
from identity.services.project_grant_audit import GrantAuditedService
from identity.services.sessions import SessionService
from identity.storage.backend import Storage
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage, RowTotal

INSTANCE_OWNER_ROLE = "IAM_OWNER"
PROJECT_OWNER_ROLE = "PROJECT_OWNER"

_COUNTED = PageRequest(limit=1, with_total=True)
_OF_NEITHER = gettext_lazy(
    "Choose a user of the organization that owns the project, or of the one that holds the grant."
)
_NO_WAY = gettext_lazy(
    "This person has no sign-in method that the instance allows. They must first set one "
    "up: their own password, a passkey, or an account at a provider that the instance "
    "manages."
)
_KNOWN = gettext_lazy("Somebody else knows this person's password. They must sign in and choose their own first.")


@dataclass(eq=False, repr=False)
class ManagerService(GrantAuditedService[Manager]):
    """Managers cannot grant more permissions than they hold, and the last IAM_OWNER stays. A user who gets their
    first role at the instance must be able to sign in by the instance's rules. Sessions and tokens obtained by
    less strict rules end. At a project grant, each of the two organizations chooses among its own users, and sees
    only those."""

    kind = "manager"
    store = "managers"
    duplicate_messages = {"user_id": gettext_lazy("This user is already a manager here. Change their roles.")}  # noqa: RUF012

    personal_fields = frozenset({"id", "user_id"})
    is_visible_to_both = False

    _choices: Capabilities
    _factors: FactorService
    _holders: InstanceManagerService
    _policies: PolicyService
    _sessions: SessionService
    _roles: Mapping[str, ManagerRole]
    _has_way: Callable[[Subject, Callable[[str], bool]], bool]

    def page(
        self, resource: Resource, request: PageRequest = FIRST_PAGE, *, principal: Principal
    ) -> ResultPage[Manager]:
        """The managers of the resource whom the caller may see, newest first."""
        return self._storage.managers.page(
            resource.key, request, organization_ids=self._access.visible_manager_organizations(principal, resource)
        )

    def count_hidden(self, resource: Resource, *, principal: Principal) -> RowTotal:
        """The number of managers of the resource whom the caller may not see."""
        sides = self._access.visible_manager_organizations(principal, resource)
        if sides is None:
            return RowTotal(0)
        stored = self._storage.managers
        every = stored.page(resource.key, _COUNTED).total or RowTotal(0)
        known = stored.page(resource.key, _COUNTED, organization_ids=sides).total or RowTotal(0)
        return RowTotal(every.count - known.count, every.is_exact)

    def is_visible(self, manager: Manager, *, principal: Principal) -> bool:
        """True unless the manager is of the other side of a project grant."""
        sides = self._access.visible_manager_organizations(principal, self._access.get_resource(manager.resource))
        return sides is None or self._home(manager.user_id) in sides

    def get_role(self, name: str) -> ManagerRole:
        """The role of this name. Raises Invalid, naming the roles there are."""
        role = self._roles.get(name)
        if role is None:
            fitting = ", ".join(sorted(self._roles))
            raise Invalid(
                {"role": gettext_lazy("There is no role {name}. Choose from {names}.", name=name, names=fitting)}
            )
        return role

    def add(
        self,
        resource: Resource,
        command: AddManager,
        *,
        principal: Principal,
        allow_without_sign_in_method: bool = False,
    ) -> Manager:
        """Add a user's roles at the resource. ``allow_without_sign_in_method``, for the operator, also accepts users
        who could not sign in.

        Raises Invalid for an unknown user or role, a role of another level, or a user who is already a manager
        there, or belongs to neither side of a project grant; Denied for a role beyond the caller's own. A user whom
        the caller may not see is unknown.
        """
        user = self._storage.users.find(command.user_id)
        if user is None or not self._access.can_see_organization(principal, user.organization_id):
            raise Invalid({"user_id": gettext_lazy("There is no such user.")})
        if resource.grantee is not None and user.organization_id not in (resource.organization_id, resource.grantee.id):
            raise Invalid({"user_id": _OF_NEITHER})
        if isinstance(user, Agent) and resource.key == INSTANCE_KEY:
            raise Invalid({"user_id": gettext_lazy("An agent cannot have roles at the instance.")})
        self.require_grantable_roles(resource, command.roles, principal, command.until)
        refuse_until(command.until, self._now)
        raised = self._raised(user.id, resource)
        if raised is not None and not allow_without_sign_in_method:
            self._refuse_shut_out(raised)
        manager = self._new_manager(command.user_id, resource, command.roles, command.until)
        if raised is not None:
            self._end_access(raised)
        return manager

    def _end_access(self, raised: Subject) -> None:
        """End sessions and tokens that the user obtained before they had a role at the instance."""
        self._holders.invalidate(raised.user.id)
        self._sessions.revoke_access(raised)

    def sync_roles(self, subject: Subject, roles: Mapping[str, bool]) -> None:
        """Give or take roles at the user's organization, as the operator; others stay. Raises DomainError."""
        resource, operator = Resource.of_organization(subject.organization.id), Principal.OPERATOR
        managers = [
            item for item in self._storage.managers.list_for_user(subject.user.id) if item.resource == resource.key
        ]
        if managers and managers[0].has_ended(self._now):
            self.remove(managers.pop().id, principal=operator)
        before = managers[0].roles if managers else frozenset[str]()
        after = merge_roles(before, roles)
        if after == before:
            return
        if not managers:
            self.add(resource, AddManager(user_id=subject.user.id, roles=after), principal=operator)
        elif after:
            self.change(managers[0].id, ChangeManager(roles=after), principal=operator)
        else:
            self.remove(managers[0].id, principal=operator)

    def count_sessions_to_end(self, user_id: str, resource: Resource) -> int:
        """How many sessions of a user end who gets a role at the resource."""
        return 0 if self._raised(user_id, resource) is None else len(self._sessions.list_by_user(user_id))

    def can_sign_in(self, subject: Subject) -> bool:
        """True if the user has a sign-in method that the instance's rules allow; roles at the instance need one."""
        policy, user_id = self._policies.instance_policy(), subject.user.id
        has_password = self._storage.users.find_password(user_id) is not None
        if has_password and self._policies.instance_allows_factor(Proof.PASSWORD_FACTOR):
            return True
        alone = (
            self._choices.passwordless_factors if policy.second_factor is not SecondFactorRule.OFF else frozenset[str]()
        )
        had = {enrolment.factor for enrolment in self._factors.list_enrolments(user_id)}
        if any(self._policies.instance_allows_factor(item) for item in alone & had):
            return True
        return self._has_way(subject, self._policies.instance_allows_factor)

    def list_without_sign_in_method(self) -> tuple[Subject, ...]:
        """The active users with a role at the instance who have no sign-in method that its rules allow."""
        found = self._storage.users.find_subjects(self._holders.list_ids()).values()
        people = (subject for subject in found if subject.is_active and isinstance(subject.user, HumanUser))
        return tuple(subject for subject in people if not self.can_sign_in(subject))

    def _raised(self, user_id: str, resource: Resource) -> Subject | None:
        """The user, if the resource is the instance and they hold no role there yet."""
        if resource.key != INSTANCE_KEY or self._holders.is_instance_manager(user_id):
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
        """Make the creator of a project its PROJECT_OWNER; None if no plugin offers the role."""
        if PROJECT_OWNER_ROLE in self._roles:
            return self._new_manager(user_id, resource, frozenset({PROJECT_OWNER_ROLE}), None)
        return None

    def change(
        self, manager_id: str, command: ChangeManager, *, principal: Principal, expected_version: int | None = None
    ) -> Manager:
        """The manager with other roles or another end. Raises NotFound, Invalid, Denied; Conflict for the last
        owner. Another end gives roles that have ended anew."""
        before = self._get_authorized(manager_id, principal)
        resource = self._access.get_resource(before.resource)
        after = self._next_version(before, command, expected_version=expected_version)
        self.require_grantable_change(before, after, principal)
        if INSTANCE_OWNER_ROLE not in after.roles or after.until is not None:
            self._refuse_deactivation(before)
        raised = None if after.has_ended(self._now) else self._raised(before.user_id, resource)
        if raised is not None:
            self._refuse_shut_out(raised)
        changed = self._update("manager.changed", before, after)
        self._sessions.end_impersonations(before.user_id)
        if raised is not None:
            self._end_access(raised)
        return changed

    def _authorize(self, manager: Manager, principal: Principal) -> None:
        if not self.is_visible(manager, principal=principal):
            raise NotFound(self.kind_label, manager.id)
        self._access.require_no_more_privileged_role(principal, manager.user_id)

    def _refuse_deactivation(self, manager: Manager) -> None:
        if INSTANCE_OWNER_ROLE in manager.roles and manager.until is None:
            refuse_last_owner(self._storage, lambda owner: owner.id == manager.id)

    def _after_removal(self, manager: Manager) -> None:
        self._holders.invalidate(manager.user_id)
        self._sessions.end_impersonations(manager.user_id)

    def _new_manager(self, user_id: str, resource: Resource, roles: frozenset[str], until: datetime | None) -> Manager:
        manager = self._new_entity(
            Manager,
            user_id=user_id,
            resource=resource.key,
            roles=roles,
            organization_id=resource.organization_id,
            until=until,
        )
        self._add("manager.added", manager, self._organization_id(manager), parent=("user", user_id))
        self._sessions.end_impersonations(user_id)
        return manager

    def _project_grant(self, manager: Manager) -> ProjectGrant | None:
        at_grant = manager.resource.level is ManagerLevel.PROJECT_GRANT
        return self._storage.project_grants.find(manager.resource.id) if at_grant else None

    def _organization_id(self, manager: Manager) -> str | None:
        grant = self._project_grant(manager)
        of_holder = grant is not None and self._home(manager.user_id) == grant.organization_id
        return grant.organization_id if grant is not None and of_holder else manager.organization_id

    def _home(self, user_id: str) -> str | None:
        user = self._storage.users.find(user_id)
        return None if user is None else user.organization_id

    def require_grantable_change(
        self, before: Manager | GroupManager, after: Manager | GroupManager, principal: Principal
    ) -> None:
        """Raise Invalid or Denied unless the principal may give the roles that are there afterwards: those that are new
        or last longer until their end. Another end gives roles that have ended anew."""
        resource = self._access.get_resource(before.resource)
        self.require_grantable_roles(resource, after.roles, principal, self._now)
        is_longer = before.has_ended(self._now) or (after.until or NEVER) > (before.until or NEVER)
        new_roles = after.roles if is_longer else after.roles - before.roles
        self.require_grantable_roles(resource, new_roles, principal, after.until)
        if after.until != before.until:
            refuse_until(after.until, self._now)

    def require_grantable_roles(
        self, resource: Resource, names: frozenset[str], principal: Principal, until: datetime | None
    ) -> None:
        """Raise Invalid unless these are roles of the resource's level, and Denied for one beyond the caller's own, or
        for longer than the caller has it."""
        for name in sorted(names):
            role = self._roles.get(name)
            if role is None or role.level is not resource.key.level:
                fitting = sorted(
                    manager_role.name
                    for manager_role in self._roles.values()
                    if manager_role.level is resource.key.level
                )
                sentence = gettext_lazy(
                    "{name} is not a role of this level. Choose from {names}.", name=name, names=", ".join(fitting)
                )
                raise Invalid({"roles": sentence})
            self._access.require_grantable(principal, role, resource, until)


def refuse_last_owner(storage: Storage, leaves: Callable[[Manager], bool]) -> None:
    """Raise Conflict if no active IAM_OWNER would be left without those in ``leaves``. The rows stay locked until
    the end of the transaction, so that two concurrent removals cannot both succeed."""
    owners = storage.managers.lock_by_role(INSTANCE_KEY, INSTANCE_OWNER_ROLE)
    if owners and all(leaves(owner) for owner in owners):
        raise Conflict(
            gettext_lazy("This is the last active {role}. Give someone else the role first.", role=INSTANCE_OWNER_ROLE)
        )
