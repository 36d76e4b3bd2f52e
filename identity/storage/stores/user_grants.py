"""User grants: project roles given to users."""

from abc import abstractmethod
from typing import Literal

from identity.domain.projects import UserGrant
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.entity import EntityStore

#: By what grants are listed.
GrantedBy = Literal["user_id", "project_id", "project_grant_id"]


class UserGrantStore(EntityStore[UserGrant]):
    """Unique: one grant per user, project and project grant (Duplicate("user_id")). Lists are newest first.

    A search finds the users of the organizations ``within`` alone; None stands for all.
    """

    @abstractmethod
    def page(
        self, by: GrantedBy, of: str, request: PageRequest = FIRST_PAGE, *, within: frozenset[str] | None = None
    ) -> Page[UserGrant]:
        """The grants that name this user, project or project grant."""

    @abstractmethod
    def effective(self, user_id: str, project_ids: frozenset[str]) -> tuple[UserGrant, ...]:
        """The user's active grants in these projects, less those whose project grant is gone or inactive, with
        roles narrowed to what a project grant allows."""
