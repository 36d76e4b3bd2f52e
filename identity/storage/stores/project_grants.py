"""Project grants."""

from abc import abstractmethod
from typing import Literal

from identity.domain.projects import ProjectGrant
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.entity import EntityStore

#: By what grants are listed.
LentBy = Literal["project_id", "organization_id"]


class ProjectGrantStore(EntityStore[ProjectGrant]):
    """Unique: one grant per project and organization (Duplicate("organization_id")). Lists are newest first."""

    @abstractmethod
    def find_for(self, project_id: str, organization_id: str) -> ProjectGrant | None:
        """The grant of this project to this organization."""

    @abstractmethod
    def page(self, by: LentBy, of: str, request: PageRequest = FIRST_PAGE) -> Page[ProjectGrant]:
        """The grants of this project, or those that this organization holds."""
