"""Projects and their roles."""

from abc import abstractmethod
from collections.abc import Collection, Mapping
from datetime import datetime

from identity.domain.expirations import NEVER
from identity.domain.names import name_key
from identity.domain.projects import Project, ProjectRole
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage, SortKeys, sortable_timestamp
from identity.storage.stores.entity_store import EntityStore

#: What the list can be sorted by, the usual order first.
PROJECT_SORT_KEYS: SortKeys[Project] = {
    "name": lambda project: name_key(project.name),
    "created_at": lambda project: sortable_timestamp(project.created_at),
}


class ProjectStore(EntityStore[Project]):
    """Role keys are unique in a project (DuplicateValue("key"))."""

    @abstractmethod
    def page(self, organization_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[Project]:
        """The organization's projects, usually by name."""

    @abstractmethod
    def count_children(self, ids: Collection[str]) -> Mapping[str, tuple[int, int]]:
        """How many applications and how many roles each of these projects has, in one query; unknown ids are left
        out."""

    @abstractmethod
    def list_audience(
        self, project_ids: frozenset[str], organization_id: str, granted_until: datetime = NEVER
    ) -> frozenset[str]:
        """Those of the ids that name an active project, in an active organization, which ``organization_id`` owns
        or holds an active grant of, made at ``granted_until`` at the latest: the projects that a user of it may have in
        a token's audience.
        """

    @abstractmethod
    def add_role(self, role: ProjectRole) -> None:
        """Store a new role."""

    @abstractmethod
    def update_role(self, role: ProjectRole) -> None:
        """Replace display name and group by the next version. Raises RowNotFound; StaleRow if that was not the next."""

    @abstractmethod
    def delete_role(self, project_id: str, key: str) -> None:
        """Delete the role, and take it out of project grants and user grants, whose version goes up."""

    @abstractmethod
    def list_roles(self, project_id: str) -> tuple[ProjectRole, ...]:
        """The project's roles by key."""
