"""Lookup: what hooks may read."""

from collections.abc import Callable
from datetime import datetime

from identity.domain.applications import Application
from identity.domain.attributes import decode_attribute
from identity.domain.organizations import Organization
from identity.domain.projects import Project
from identity.domain.records import Record, RecordNamespace
from identity.domain.users import Agent, User
from identity.services.agent_rules import list_effective_grants
from identity.services.base import ReadSessionFactory
from identity.services.records import RecordService


class Lookup:
    """Read-only look-ups that never block writers; each returns None for what does not exist."""

    def __init__(
        self, look: ReadSessionFactory, record_service: Callable[[RecordNamespace], RecordService], now: datetime
    ) -> None:
        self._look, self._record_service, self._now = look, record_service, now

    def find_user(self, user_id: str) -> User | None:
        with self._look() as storage:
            return storage.users.find(user_id)

    def find_organization(self, organization_id: str) -> Organization | None:
        with self._look() as storage:
            return storage.organizations.find(organization_id)

    def find_project(self, project_id: str) -> Project | None:
        with self._look() as storage:
            return storage.projects.find(project_id)

    def find_application(self, client_id: str) -> Application | None:
        with self._look() as storage:
            return storage.applications.find(client_id)

    def list_token_attributes(self, user_id: str) -> tuple[tuple[str, str, str | int | float | bool], ...]:
        """Key, claim and value of the user's attributes in tokens, by key; the claim is empty for none. This is a
        query."""
        with self._look() as storage:
            stored = storage.attributes.list_user_attributes(user_id)
        values = ((item, decode_attribute(item, text)) for item, text in stored if item.in_tokens)
        return tuple((item.key, item.claim, value) for item, value in values if value is not None)

    def find_record(self, namespace: RecordNamespace, kind: str, key: str) -> Record | None:
        """The plugin's own record, by the namespace that ``identity_record_namespace`` handed to it."""
        return self._record_service(namespace).find(kind, key)

    def list_records(
        self, namespace: RecordNamespace, kind: str, *, user_id: str | None = None, application_id: str | None = None
    ) -> tuple[Record, ...]:
        """The plugin's own records of a user, of an application or of both together, newest first."""
        return self._record_service(namespace).list_by_owner(kind, user_id=user_id, application_id=application_id)

    def list_project_roles(self, user_id: str, project_id: str) -> frozenset[str]:
        """The project roles that the user effectively has in the project."""
        with self._look() as storage:
            grants = storage.user_grants.list_effective(user_id, frozenset({project_id}), self._now)
            user = storage.users.find(user_id) if grants else None
            if isinstance(user, Agent):
                grants = list_effective_grants(storage, user, frozenset({project_id}), self._now)
        return frozenset(role for grant in grants for role in grant.roles)
