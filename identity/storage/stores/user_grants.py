"""User grants: project roles given to users."""

from abc import ABC, abstractmethod

from identity.domain.projects import UserGrant
from identity.storage.paging import FIRST_PAGE, Page, PageRequest


class UserGrantStore(ABC):
    """Unique: one grant per user, project and project grant (Duplicate("user_id")). Lists are newest first.

    A search finds the users of the organizations ``within`` alone; None stands for all.
    """

    @abstractmethod
    def add(self, grant: UserGrant) -> None:
        """Store a new grant."""

    @abstractmethod
    def find(self, grant_id: str) -> UserGrant | None:
        """The grant with this id."""

    @abstractmethod
    def update(self, grant: UserGrant) -> None:
        """Replace the stored value."""

    @abstractmethod
    def remove(self, grant_id: str) -> None:
        """Delete it."""

    @abstractmethod
    def page_of_user(self, user_id: str, request: PageRequest = FIRST_PAGE) -> Page[UserGrant]:
        """The grants of a user."""

    @abstractmethod
    def page_of_project(
        self, project_id: str, request: PageRequest = FIRST_PAGE, *, within: frozenset[str] | None = None
    ) -> Page[UserGrant]:
        """The grants in a project."""

    @abstractmethod
    def page_of_project_grant(
        self, project_grant_id: str, request: PageRequest = FIRST_PAGE, *, within: frozenset[str] | None = None
    ) -> Page[UserGrant]:
        """The grants that derive from a project grant."""

    @abstractmethod
    def effective(self, user_id: str, project_ids: frozenset[str]) -> tuple[UserGrant, ...]:
        """The user's active grants in these projects, less those whose project grant is gone or inactive, with
        roles narrowed to what a project grant allows."""
