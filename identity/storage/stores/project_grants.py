"""Project grants."""

from abc import abstractmethod

from identity.domain.projects import ProjectGrant
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.entity import EntityStore


class ProjectGrantStore(EntityStore[ProjectGrant]):
    """Unique: one grant per project and organization (Duplicate("organization_id")). Lists are newest first."""

    @abstractmethod
    def find_for(self, project_id: str, organization_id: str) -> ProjectGrant | None:
        """The grant of this project to this organization."""

    @abstractmethod
    def page(self, project_id: str, request: PageRequest = FIRST_PAGE) -> Page[ProjectGrant]:
        """The grants of a project."""

    @abstractmethod
    def page_held(self, organization_id: str, request: PageRequest = FIRST_PAGE) -> Page[ProjectGrant]:
        """The grants that an organization holds."""
