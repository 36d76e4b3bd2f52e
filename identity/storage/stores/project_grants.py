"""Project grants."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping

from identity.domain.projects import ProjectGrant
from identity.storage.paging import FIRST_PAGE, Page, PageRequest


class ProjectGrantStore(ABC):
    """Unique: one grant per project and organization (Duplicate("organization_id")). Lists are newest first."""

    @abstractmethod
    def add(self, grant: ProjectGrant) -> None:
        """Store a new grant."""

    @abstractmethod
    def find(self, grant_id: str) -> ProjectGrant | None:
        """The grant with this id."""

    @abstractmethod
    def find_many(self, ids: Collection[str]) -> Mapping[str, ProjectGrant]:
        """The grants with these ids, by id and in one query; unknown ids are left out."""

    @abstractmethod
    def find_for(self, project_id: str, organization_id: str) -> ProjectGrant | None:
        """The grant of this project to this organization."""

    @abstractmethod
    def update(self, grant: ProjectGrant) -> None:
        """Replace the stored value."""

    @abstractmethod
    def remove(self, grant_id: str) -> None:
        """Delete it with the user grants and managers that derive from it."""

    @abstractmethod
    def page(self, project_id: str, request: PageRequest = FIRST_PAGE) -> Page[ProjectGrant]:
        """The grants of a project."""

    @abstractmethod
    def page_held(self, organization_id: str, request: PageRequest = FIRST_PAGE) -> Page[ProjectGrant]:
        """The grants that an organization holds."""
