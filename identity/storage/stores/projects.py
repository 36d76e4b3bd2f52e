"""Projects and their roles."""

from abc import abstractmethod
from collections.abc import Collection, Mapping
from datetime import datetime

from identity.domain.expirations import NEVER
from identity.domain.names import name_key
from identity.domain.projects import Project, ProjectRole
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage, SortKeys, sortable_timestamp
from identity.storage.stores.entity_store import EntityStore

#: Sort keys of the list, the default first.
PROJECT_SORT_KEYS: SortKeys[Project] = {
    "name": lambda project: name_key(project.name),
    "created_at": lambda project: sortable_timestamp(project.created_at),
}


class ProjectStore(EntityStore[Project]):
    """Role keys are unique in a project (DuplicateValue("key"))."""

    @abstractmethod
    def page(self, organization_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[Project]:
        """The organization's projects, by name by default."""

    @abstractmethod
    def count_children(self, ids: Collection[str]) -> Mapping[str, tuple[int, int]]:
        """Numbers of applications and roles of each of these projects, in one query; unknown ids are left out."""

    @abstractmethod
    def list_audience(
        self, project_ids: frozenset[str], organization_id: str, now: datetime, granted_until: datetime = NEVER
    ) -> frozenset[str]:
        """The ids of active projects in active organizations that ``organization_id`` owns or has an active grant of
        that has not ended, made at ``granted_until`` at the latest: the projects that its users may have in a token's
        audience."""

    @abstractmethod
    def list_by_resource_uri(self, uri: str) -> tuple[Project, ...]:
        """The projects with this resource URI, by id."""

    @abstractmethod
    def add_role(self, role: ProjectRole) -> None:
        """Store a new role. Raises RowNotFound, DuplicateValue("key")."""

    @abstractmethod
    def update_role(self, role: ProjectRole) -> None:
        """Replace display name and group by the next version. Raises RowNotFound; StaleRow if the version is not the
        next."""

    @abstractmethod
    def delete_role(self, project_id: str, key: str) -> None:
        """Delete the role, and remove it from project grants and user grants, whose versions increase."""

    @abstractmethod
    def list_roles(self, project_id: str) -> tuple[ProjectRole, ...]:
        """The project's roles by key."""
