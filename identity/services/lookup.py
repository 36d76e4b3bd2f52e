"""Lookup: what hooks may read."""

from identity.domain.applications import Application
from identity.domain.organizations import Organization
from identity.domain.projects import Project
from identity.domain.users import User
from identity.services.base import ReadSessionFactory


class Lookup:
    """Read-only look-ups that never block writers; each returns None for what does not exist."""

    def __init__(self, look: ReadSessionFactory) -> None:
        self._look = look

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

    def list_project_roles(self, user_id: str, project_id: str) -> frozenset[str]:
        """The project roles that the user effectively has in the project."""
        with self._look() as storage:
            grants = storage.user_grants.list_effective(user_id, frozenset({project_id}))
        return frozenset(role for grant in grants for role in grant.roles)
