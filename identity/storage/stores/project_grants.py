"""Project grants."""

from abc import abstractmethod
from datetime import datetime
from typing import Literal

from identity.domain.projects import ProjectGrant
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.entity_store import EntityStore

#: Field by which grants are listed.
ProjectGrantFilterField = Literal["project_id", "organization_id"]


class ProjectGrantStore(EntityStore[ProjectGrant]):
    """Unique: one grant per project and organization (DuplicateValue("organization_id")). Lists are newest first."""

    @abstractmethod
    def find_for_organization(self, project_id: str, organization_id: str) -> ProjectGrant | None:
        """The grant of this project to this organization."""

    @abstractmethod
    def page(
        self, filter_field: ProjectGrantFilterField, filter_id: str, request: PageRequest = FIRST_PAGE
    ) -> ResultPage[ProjectGrant]:
        """The grants of this project, or those that this organization has received."""

    @abstractmethod
    def list_ending(
        self, after: datetime | None, until: datetime, limit: int, *, organization_id: str | None = None
    ) -> tuple[ProjectGrant, ...]:
        """The grants that end at ``until`` at the latest and after ``after``, soonest first. With an organization,
        those that it receives or gives."""
