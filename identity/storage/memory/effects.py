"""What falls with a thing, in memory: the thing is removed from a copy, and what is missing there is counted."""

from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from identity.domain.effects import Effects, Removed
from identity.domain.sessions import Session
from identity.domain.tokens import AccessToken
from identity.domain.users import HumanUser
from identity.storage.memory.entities import MemoryStore
from identity.storage.memory.sessions import has_ended
from identity.storage.memory.tables import Table, Tables
from identity.storage.stores.effects import EffectStore

Key = TypeVar("Key")
Row = TypeVar("Row")


#: The table of each thing, and as what the thing itself would be counted.
_COUNTED_AS = {
    Removed.ORGANIZATION: ("organizations", ()),
    Removed.PROJECT: ("projects", ("projects",)),
    Removed.PROJECT_GRANT: ("project_grants", ("project_grants",)),
    Removed.APPLICATION: ("applications", ("applications",)),
    Removed.USER: ("users", ("users", "service_users")),
    Removed.KEY: ("service_user_keys", ("keys",)),
    Removed.SECRET: ("service_user_secrets", ("secrets",)),
}


class MemoryEffectStore(MemoryStore, EffectStore):
    """Looks at all tables."""

    def of(self, removed: Removed, id: str, at: datetime) -> Effects:  # noqa: A002
        name, own = _COUNTED_AS[removed]
        if id not in getattr(self._tables, name):
            return Effects()
        effects = replace(self._without(name, id, at), **dict.fromkeys(own, 0))
        if removed is not Removed.PROJECT_GRANT:
            return effects
        holders = {grant.user_id for grant in self._tables.user_grants if grant.project_grant_id == id}
        return replace(effects, users=len(holders))

    def of_role(self, project_id: str, key: str) -> Effects:
        return Effects(
            user_grants=sum(
                grant.project_id == project_id and key in grant.roles for grant in self._tables.user_grants
            ),
            project_grants=sum(
                grant.project_id == project_id and key in grant.roles for grant in self._tables.project_grants
            ),
        )

    def _without(self, name: str, id_: str, at: datetime) -> Effects:
        without = Tables.of(self._tables.state(), writable=True)
        getattr(without, name).delete(id_)
        before = self._tables
        users = _missing(before.users, without.users)
        people = sum(isinstance(user, HumanUser) for user in users)
        sessions = _missing(before.sessions, without.sessions)
        secrets = _missing(before.client_secrets, without.client_secrets)
        own_secrets = _missing(before.service_user_secrets, without.service_user_secrets)
        tokens = _missing(before.access_tokens, without.access_tokens)
        return Effects(
            users=people,
            service_users=len(users) - people,
            projects=len(_missing(before.projects, without.projects)),
            applications=len(_missing(before.applications, without.applications)),
            roles=len(_missing(before.project_roles, without.project_roles)),
            project_grants=len(_missing(before.project_grants, without.project_grants)),
            user_grants=len(_missing(before.user_grants, without.user_grants)),
            managers=len(_missing(before.managers, without.managers)),
            keys=len(_missing(before.service_user_keys, without.service_user_keys)),
            secrets=len(secrets) + len(own_secrets),
            personal_access_tokens=len(_missing(before.personal_access_tokens, without.personal_access_tokens)),
            sessions=sum(_is_open(session, at) for session in sessions),
            live_tokens=sum(self._is_live(token, at) for token in tokens),
        )

    def _is_live(self, token: AccessToken, at: datetime) -> bool:
        family = None if token.family_id is None else self._tables.families.get(token.family_id)
        return (
            token.revoked_at is None
            and at < token.expires_at
            and (family is None or family.revoked_at is None)
            and not has_ended(self._tables, token.session_id)
        )


def _missing(before: Table[Key, Row], after: Table[Key, Row]) -> list[Row]:
    return [row for key, row in before.rows.items() if key not in after.rows]


def _is_open(session: Session, at: datetime) -> bool:
    return session.ended_at is None and at < session.ends_at
