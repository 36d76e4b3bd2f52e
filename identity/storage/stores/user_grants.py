"""User grants: project roles of users."""

from abc import abstractmethod
from datetime import datetime
from typing import Literal

from identity.domain.projects import UserGrant
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.entity_store import EntityStore

#: Field by which grants are listed.
UserGrantFilterField = Literal["user_id", "project_id", "project_grant_id"]


class UserGrantStore(EntityStore[UserGrant]):
    """Unique: one grant per user, project and project grant (DuplicateValue("user_id")). Lists are newest first. A
    search matches only users of the organizations with ``organization_ids``; None means all."""

    @abstractmethod
    def page(
        self,
        filter_field: UserGrantFilterField,
        filter_id: str,
        request: PageRequest = FIRST_PAGE,
        *,
        organization_ids: frozenset[str] | None = None,
    ) -> ResultPage[UserGrant]:
        """The grants of this user, project or project grant."""

    @abstractmethod
    def list_effective(self, user_id: str, project_ids: frozenset[str], now: datetime) -> tuple[UserGrant, ...]:
        """The user's active grants in these projects that have not ended, except those whose project grant is gone,
        inactive or ended, with roles and end narrowed to what a project grant allows."""

    @abstractmethod
    def list_ending(
        self, after: datetime | None, until: datetime, limit: int, *, organization_id: str | None = None
    ) -> tuple[UserGrant, ...]:
        """The grants that end at ``until`` at the latest and after ``after``, soonest first. With an organization,
        those of its users."""
