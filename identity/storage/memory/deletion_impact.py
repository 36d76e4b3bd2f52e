"""Deletion impact, in memory: delete the entity in a copy, and count the missing rows."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from identity.domain.deletion_impact import DeletionImpact, DeletionTarget
from identity.domain.sessions import Session
from identity.domain.tokens import AccessToken
from identity.domain.users import HumanUser
from identity.storage.memory.entity_store import MemoryStore
from identity.storage.memory.sessions import has_ended
from identity.storage.memory.tables import MemoryTables
from identity.storage.stores.deletion_impact import DeletionImpactStore

#: The table of each deletion target, and the count that would include the target itself.
_TABLES_BY_TARGET = {
    DeletionTarget.ORGANIZATION: ("organizations", ()),
    DeletionTarget.PROJECT: ("projects", ("projects",)),
    DeletionTarget.PROJECT_GRANT: ("project_grants", ("project_grants",)),
    DeletionTarget.APPLICATION: ("applications", ("applications",)),
    DeletionTarget.USER: ("users", ("users", "service_users")),
    DeletionTarget.KEY: ("service_user_keys", ("keys",)),
    DeletionTarget.SECRET: ("service_user_secrets", ("secrets",)),
    DeletionTarget.FEDERATED_CREDENTIAL: ("federated_credentials", ()),
}
#: The tables of counts that need no further condition.
_TABLES_BY_COUNT = {
    "projects": ("projects",),
    "applications": ("applications",),
    "roles": ("project_roles",),
    "project_grants": ("project_grants",),
    "user_grants": ("user_grants",),
    "managers": ("managers",),
    "groups": ("groups",),
    "keys": ("service_user_keys",),
    "secrets": ("client_secrets", "service_user_secrets"),
    "personal_access_tokens": ("personal_access_tokens",),
}


class MemoryDeletionImpactStore(MemoryStore, DeletionImpactStore):
    def count(self, target: DeletionTarget, id: str, now: datetime) -> DeletionImpact:
        name, count_own = _TABLES_BY_TARGET[target]
        if id not in getattr(self._tables, name):
            return DeletionImpact()
        none: dict[str, Any] = dict.fromkeys(count_own, 0)
        effects = replace(self._without(name, id, now), **none)
        if target in (DeletionTarget.PROJECT, DeletionTarget.PROJECT_GRANT):
            grants = (row for row in self._tables.group_grants if id in (row.project_id, row.project_grant_id))
            effects = replace(effects, groups=len({grant.group_id for grant in grants}))
        if target is not DeletionTarget.PROJECT_GRANT:
            return effects
        holders = {grant.user_id for grant in self._tables.user_grants if grant.project_grant_id == id}
        return replace(effects, users=len(holders))

    def count_role_grants(self, project_id: str, key: str) -> DeletionImpact:
        return DeletionImpact(
            user_grants=sum(row.project_id == project_id and key in row.roles for row in self._tables.user_grants),
            project_grants=sum(
                grant.project_id == project_id and key in grant.roles for grant in self._tables.project_grants
            ),
            groups=sum(row.project_id == project_id and key in row.roles for row in self._tables.group_grants),
        )

    def _without(self, name: str, id_: str, at: datetime) -> DeletionImpact:
        without = MemoryTables.from_state(self._tables.state(), writable=True)
        getattr(without, name).delete(id_)

        def missing(table: str) -> list[Any]:
            left = getattr(without, table)
            return [row for key, row in getattr(self._tables, table).rows.items() if key not in left]

        counts: dict[str, Any] = {
            count: sum(len(missing(table)) for table in tables) for count, tables in _TABLES_BY_COUNT.items()
        }
        people = sum(isinstance(user, HumanUser) for user in missing("users"))
        return DeletionImpact(
            **counts,
            users=people,
            service_users=len(missing("users")) - people,
            sessions=sum(_is_open_session(session, at) for session in missing("sessions")),
            live_tokens=sum(self._is_live(token, at) for token in missing("access_tokens")),
        )

    def _is_live(self, token: AccessToken, at: datetime) -> bool:
        family = self._tables.families.find(token.family_id)
        return (
            token.revoked_at is None
            and at < token.expires_at
            and (family is None or family.revoked_at is None)
            and not has_ended(self._tables, token.session_id)
        )


def _is_open_session(session: Session, at: datetime) -> bool:
    return session.ended_at is None and at < session.ends_at
