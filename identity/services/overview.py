"""Overview pages: what needs attention, and what a new organization still lacks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import Any

from identity.crypto.secrets import token_digest
from identity.domain.audit import Actor, AuditFilter, Result
from identity.domain.groups import Group, GroupGrant, GroupManager, GroupMember
from identity.domain.managers import Manager
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.projects import ProjectGrant, UserGrant
from identity.domain.records import CORE_NAMESPACE, Record
from identity.domain.service_user_keys import ServiceUserKey
from identity.domain.signing_keys import KeyState, SigningKey
from identity.domain.users import Subject
from identity.services.access_control import AccessControl, Principal
from identity.services.base import Service, translate_storage_errors
from identity.services.signing_keys import SigningKeyService
from identity.storage.paging import MAX_PAGE_ROWS, PageRequest
from identity.storage.stores.users import UserKind

_AHEAD = timedelta(days=30)
_LATELY = timedelta(hours=24)
_MOST_EXPIRING = 50
_MOST_ENDING = 20
_MOST_REFUSED = 20
_SINGLE_ROW = PageRequest(limit=1)
#: The kind of the records of those who hide the set-up steps.
_HIDDEN_STEPS = "hidden_steps"


class ExpiringCredentialKind(StrEnum):
    KEY = "service_user_key"
    TOKEN = "personal_access_token"  # noqa: S105 - a kind
    SIGNING_KEY = "signing_key"


class EndingKind(StrEnum):
    USER_GRANT = "user_grant"
    PROJECT_GRANT = "project_grant"
    MANAGER = "manager"
    GROUP_MEMBER = "group_member"
    GROUP_GRANT = "group_grant"
    GROUP_MANAGER = "group_manager"


EndingEntity = UserGrant | ProjectGrant | Manager | GroupMember | GroupGrant | GroupManager
RoleHolder = Subject | Organization | Group


@dataclass(frozen=True, slots=True)
class ExpiringCredential:
    """A credential that expires soon; ``owner`` is None for the service's own keys."""

    kind: ExpiringCredentialKind
    credential: ServiceUserKey | PersonalAccessToken | SigningKey
    owner: Subject | None
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class EndingRole:
    """Roles, a project grant or a membership that end soon. ``holder`` is who has them: of a project grant the
    organization, of the roles of a group the group."""

    kind: EndingKind
    entity: EndingEntity
    holder: RoleHolder
    ends_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalSummary:
    """Refused attempts with the same actor, target and reason: how many, and when the last one was."""

    event: str
    actor: Actor
    object_kind: str
    object_id: str | None
    reason: str | None
    last_at: datetime
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GettingStarted:
    """Which of the first set-up steps an organization has completed."""

    project: bool
    application: bool
    service_user: bool
    key: bool
    manager: bool


@dataclass(eq=False, repr=False)
class OverviewService(Service):
    """Short lists, each read from an index, for one organization or for the instance."""

    _access: AccessControl
    _signing_keys: SigningKeyService

    def list_expiring(self, organization_id: str | None, *, principal: Principal) -> tuple[ExpiringCredential, ...]:
        """What expires within 30 days, soonest first, at most 50, except what a plugin hides from ``principal``. Keys
        and personal access tokens; without an organization also signing keys that retire soon."""
        until = self._now + _AHEAD
        keys = self._storage.credentials.list_expiring(
            ServiceUserKey, self._now, until, _MOST_EXPIRING, organization_id=organization_id
        )
        tokens = self._storage.credentials.list_expiring(
            PersonalAccessToken, self._now, until, _MOST_EXPIRING, organization_id=organization_id
        )
        holders = {key.user_id for key in keys} | {token.user_id for token in tokens}
        subjects = self._storage.users.find_subjects(holders)
        owners = {subject.user.id: subject for subject in self._access.filter_visible(principal, subjects.values())}
        kinds = ((ExpiringCredentialKind.KEY, keys), (ExpiringCredentialKind.TOKEN, tokens))
        expiring_credentials = [
            ExpiringCredential(kind, item, owners[item.user_id], item.expires_at)
            for kind, ones in kinds
            for item in ones
            if item.user_id in owners
        ]
        if organization_id is None:
            expiring_credentials += self._list_retiring_keys(until)
        return tuple(sorted(expiring_credentials, key=lambda item: item.expires_at)[:_MOST_EXPIRING])

    def list_ending(self, organization_id: str | None, *, principal: Principal) -> tuple[EndingRole, ...]:
        """Roles, project grants and memberships that end within 30 days, soonest first, at most 20 of each kind. Each
        needs the permission to read it where it applies, so a manager of users does not learn who manages the
        organization; the roles of a group need ``group.read``, as on its page. A manager at a project grant is listed
        only for the side that the principal sees."""
        storage, until = self._storage, self._now + _AHEAD
        found: list[tuple[EndingKind, EndingEntity]] = []
        for kind, store in (
            (EndingKind.USER_GRANT, storage.user_grants),
            (EndingKind.PROJECT_GRANT, storage.project_grants),
            (EndingKind.MANAGER, storage.managers),
            (EndingKind.GROUP_MEMBER, storage.group_members),
            (EndingKind.GROUP_GRANT, storage.group_grants),
            (EndingKind.GROUP_MANAGER, storage.group_managers),
        ):
            rows: Sequence[Any] = store.list_ending(self._now, until, _MOST_ENDING, organization_id=organization_id)
            found += [(kind, row) for row in self._access.filter_permitted(principal, rows)]
        subjects = storage.users.find_subjects(
            {row.user_id for _, row in found if isinstance(row, (UserGrant, Manager, GroupMember))}
        )
        organizations = storage.organizations.find_many(
            {row.organization_id for _, row in found if isinstance(row, ProjectGrant)}
        )
        groups = storage.groups.find_many(
            {row.group_id for _, row in found if isinstance(row, (GroupGrant, GroupManager))}
        )
        ending = []
        for kind, row in found:
            holder: RoleHolder | None
            match row:
                case ProjectGrant():
                    holder = organizations.get(row.organization_id)
                case GroupGrant() | GroupManager():
                    holder = groups.get(row.group_id)
                case _:
                    holder = subjects.get(row.user_id)
            if holder is not None and row.until is not None and self._is_holder_visible(row, holder, principal):
                ending.append(EndingRole(kind, row, holder, row.until))
        return tuple(sorted(ending, key=lambda item: item.ends_at))

    def _is_holder_visible(self, row: object, holder: RoleHolder, principal: Principal) -> bool:
        if not isinstance(row, Manager) or not isinstance(holder, Subject):
            return True
        sides = self._access.visible_manager_organizations(principal, self._access.get_resource(row.resource))
        return sides is None or holder.organization.id in sides

    def list_refused(self, organization_id: str | None, *, principal: Principal) -> tuple[RefusalSummary, ...]:
        """Refusals of the last 24 hours, grouped, latest first, at most 20, except what a plugin hides from
        ``principal``."""
        audit_filter = AuditFilter(organization_id=organization_id, result=Result.REFUSED, since=self._now - _LATELY)
        found: dict[tuple[object, ...], RefusalSummary] = {}
        for event in self._access.filter_visible(
            principal, self._storage.audit.page(PageRequest(limit=MAX_PAGE_ROWS), audit_filter)
        ):
            key = (event.event, event.actor.kind, event.actor.id, event.object_kind, event.object_id, event.reason)
            known = found.get(key)
            found[key] = (
                replace(known, count=known.count + 1)
                if known is not None
                else RefusalSummary(
                    event=event.event,
                    actor=event.actor,
                    object_kind=event.object_kind,
                    object_id=event.object_id,
                    reason=event.reason,
                    last_at=event.at,
                    count=1,
                )
            )
        return tuple(islice(found.values(), _MOST_REFUSED))

    def getting_started(self, organization_id: str) -> GettingStarted:
        """Completed set-up steps of the organization; reads only its first projects and service users."""
        projects = self._storage.projects.page(organization_id)
        robots = self._storage.users.page(organization_id, UserKind.SERVICE)
        counts = self._storage.projects.count_children([project.id for project in projects]).values()
        keys = self._storage.credentials.key_summaries([robot.id for robot in robots], self._now)
        managers = self._storage.managers.page(Resource.of_organization(organization_id).key, _SINGLE_ROW)
        return GettingStarted(
            project=bool(projects),
            application=any(applications for applications, _ in counts),
            service_user=bool(robots),
            key=bool(keys),
            manager=bool(managers),
        )

    def are_steps_hidden(self, organization_id: str, *, principal: Principal) -> bool:
        """True if the caller has hidden the set-up steps of the organization."""
        key = _hidden_steps_key(organization_id, principal)
        return key is not None and self._storage.records.find(CORE_NAMESPACE, _HIDDEN_STEPS, key) is not None

    def hide_steps(self, organization_id: str, *, principal: Principal) -> None:
        """Hide the set-up steps of the organization for the caller alone; nothing happens the second time."""
        key = _hidden_steps_key(organization_id, principal)
        if key is not None:
            record = Record(
                plugin=CORE_NAMESPACE, kind=_HIDDEN_STEPS, key=key, user_id=principal.id, created_at=self._now
            )
            with translate_storage_errors("user", principal.id or ""):
                self._storage.records.add(record)

    def show_steps(self, organization_id: str, *, principal: Principal) -> None:
        """The reverse."""
        key = _hidden_steps_key(organization_id, principal)
        if key is not None:
            self._storage.records.delete(CORE_NAMESPACE, _HIDDEN_STEPS, key)

    def _list_retiring_keys(self, until: datetime) -> Iterator[ExpiringCredential]:
        for key, state, retires_at, *_ in self._signing_keys.list_key_states():
            if state is KeyState.ACTIVE and retires_at is not None and retires_at <= until:
                yield ExpiringCredential(ExpiringCredentialKind.SIGNING_KEY, key, None, retires_at)


def _hidden_steps_key(organization_id: str, principal: Principal) -> bytes | None:
    """None for the operator."""
    return None if principal.id is None else token_digest(f"{principal.id}|{organization_id}")
