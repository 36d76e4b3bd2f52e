"""Users, in memory."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from identity.domain.email_addresses import is_same_mailbox
from identity.domain.names import login_name_key, name_key
from identity.domain.search import matches_query
from identity.domain.users import GLOBALLY_TRUSTED_VERIFIERS, Agent, HumanUser, PasswordHash, ServiceUser, Subject, User
from identity.storage.errors import DuplicateValue
from identity.storage.memory.entity_store import MemoryEntityStore, advance_timestamp, sort_oldest_first
from identity.storage.memory.tables import MemoryTables
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage, page_in_memory
from identity.storage.stores.users import MAX_USERS_PER_EMAIL, USER_SORT_KEYS, UserKind, UserStore


class MemoryUserStore(MemoryEntityStore[User], UserStore):
    def add_many(self, users: Sequence[User]) -> None:
        rows = {user.id: user for user in users}
        if len(rows) < len(users):
            raise DuplicateValue("id")
        self._rows.insert(rows)

    def find_subject(self, user_id: str) -> Subject | None:
        return find_subject(self._tables, user_id)

    def find_subjects(self, ids: Collection[str]) -> Mapping[str, Subject]:
        return {id_: require_subject(self._tables, id_) for id_ in self._rows.find_many(ids)}

    def find_by_name(self, organization_id: str, user_name: str) -> User | None:
        return next((user for user in self._named(user_name) if user.organization_id == organization_id), None)

    def find_by_login_name(self, login_name: str) -> Subject | None:
        user_name, domain = login_name_key(login_name)
        subjects = (self._subject(user) for user in self._named(user_name))
        return next((subject for subject in subjects if subject.organization.primary_domain == domain), None)

    def find_by_user_name_alone(self, user_name: str, *, preferred_organization_id: str) -> Subject | None:
        ranked = [
            (user.organization_id != preferred_organization_id or user.registered, user.named_at, user.id)
            for user in self._named(user_name)
            if isinstance(user, HumanUser) and user.named_at is not None
        ]
        return require_subject(self._tables, min(ranked)[-1]) if ranked else None

    def find_by_email(self, organization_id: str, email: str) -> tuple[Subject, ...]:
        people = (user for user in self._human_users() if user.organization_id == organization_id)
        found = sort_oldest_first(user for user in people if is_same_mailbox(user.profile.email, email))
        return tuple(map(self._subject, found[:MAX_USERS_PER_EMAIL]))

    def find_by_verified_email(
        self,
        key: str,
        *,
        organization_id: str | None = None,
        is_proven: bool = False,
        active: bool = False,
        limit: int = MAX_USERS_PER_EMAIL,
    ) -> tuple[Subject, ...]:
        people = (
            user
            for user in self._human_users()
            if user.verified_email_key == key
            and organization_id in (None, user.organization_id)
            and (user.email_verified_by in GLOBALLY_TRUSTED_VERIFIERS or not is_proven)
        )
        subjects = map(self._subject, sort_oldest_first(people))
        return tuple(subject for subject in subjects if subject.is_active or not active)[:limit]

    def has_email_used_as_login_name(self, organization_id: str, domain: str) -> bool:
        users = [user for user in self._rows if user.organization_id == organization_id]
        names = {f"{name_key(user.user_name)}@{domain}": user.id for user in users}
        people = [user for user in users if isinstance(user, HumanUser) and user.profile.email_verified]
        return any(
            names.get(address, user.id) != user.id
            for user in people
            for address in (name_key(user.profile.email), user.verified_email_key or "")
        )

    def list_email_keys_verified_in_other_organizations(
        self, organization_id: str, domain: str, limit: int
    ) -> tuple[str, ...]:
        keys = {
            user.verified_email_key or ""
            for user in self._human_users()
            if user.organization_id != organization_id
            and user.email_verified_by in GLOBALLY_TRUSTED_VERIFIERS
            and self._subject(user).is_active
        }
        return tuple(sorted(key for key in keys if key.endswith(f"@{domain}"))[:limit])

    def update(self, value: User) -> None:
        stored = self._rows.find(value.id)
        if isinstance(value, HumanUser) and isinstance(stored, HumanUser):
            value = replace(value, last_sign_in_at=stored.last_sign_in_at)
        super().update(value)

    def update_last_sign_in(self, user_id: str, signed_in_at: datetime) -> None:
        if isinstance(self._rows.find(user_id), HumanUser):
            advance_timestamp(self._tables.users, user_id, "last_sign_in_at", signed_in_at)

    def page(
        self,
        organization_id: str | None,
        kind: UserKind | None,
        request: PageRequest = FIRST_PAGE,
        *,
        with_agents: bool = True,
    ) -> ResultPage[User]:
        kinds = {kind, UserKind.AGENT} if kind is UserKind.SERVICE and with_agents else {kind}
        rows = (
            user
            for user in self._rows
            if organization_id in (None, user.organization_id)
            and (kind is None or UserKind.from_user(user) in kinds)
            and user_matches_query(self._tables, user, request.query)
        )
        return page_in_memory(rows, request, USER_SORT_KEYS)

    def list_with_other_algorithms(self, algorithms: Collection[str], limit: int) -> tuple[User, ...]:
        listed = {None, *algorithms}
        robots = (user for user in self._rows if isinstance(user, ServiceUser))
        found = [user for user in robots if user.active and user.id_token_signed_response_alg not in listed]
        return tuple(sorted(found, key=lambda user: user.id)[:limit])

    def list_due_deletions(self, now: datetime, limit: int) -> tuple[str, ...]:
        due = sorted(
            (user.deletion_at, user.id)
            for user in self._human_users()
            if user.deletion_at is not None and user.deletion_at <= now
        )
        return tuple(id_ for _, id_ in due[:limit])

    def list_agents(self, owner_user_id: str) -> tuple[Agent, ...]:
        agents = (user for user in self._rows if isinstance(user, Agent))
        return tuple(sort_oldest_first(agent for agent in agents if agent.owner_user_id == owner_user_id))

    def stop_agents(self, owner_user_id: str, stopped_at: datetime) -> int:
        running = [agent for agent in self.list_agents(owner_user_id) if agent.stopped_at is None]
        for agent in running:
            stopped = replace(agent, stopped_at=stopped_at, changed_at=stopped_at, version=agent.version + 1)
            self._rows.replace_unchecked(agent.id, stopped)
        return len(running)

    def _human_users(self) -> list[HumanUser]:
        return [user for user in self._rows if isinstance(user, HumanUser)]

    def _subject(self, user: User) -> Subject:
        return require_subject(self._tables, user.id)

    def _named(self, user_name: str) -> list[User]:
        key = name_key(user_name)
        return [user for user in self._rows if name_key(user.user_name) == key]

    def find_password(self, user_id: str) -> PasswordHash | None:
        return self._tables.passwords.find(user_id)

    def set_password(self, password: PasswordHash) -> None:
        self._tables.passwords.replace(password.user_id, password)

    def lock_password_hash(self, user_id: str, hash: str) -> bool:
        password = self._tables.passwords.find(user_id)
        return password is not None and password.hash == hash

    def list_must_change_password(self, user_ids: Collection[str]) -> Mapping[str, bool]:
        passwords = self._tables.passwords.find_many(user_ids)
        return {user_id: password.must_change for user_id, password in passwords.items()}


def user_matches_query(tables: MemoryTables, user: User, query: str) -> bool:
    """True if the query matches the user, by login name as well."""
    return matches_query(query, user, tables.organizations.get(user.organization_id).primary_domain)


def find_subject(tables: MemoryTables, user_id: str | None) -> Subject | None:
    return None if tables.users.find(user_id) is None else require_subject(tables, str(user_id))


def require_subject(tables: MemoryTables, user_id: str) -> Subject:
    """Raises RowNotFound."""
    user = tables.users.get(user_id)
    return Subject(user, tables.organizations.get(user.organization_id))


def organization_user_ids(tables: MemoryTables, organization_id: str, except_ids: frozenset[str]) -> frozenset[str]:
    """The ids of the organization's users, except these."""
    return frozenset(user.id for user in tables.users if user.organization_id == organization_id) - except_ids
