"""What falls with a thing, in numbers."""

from abc import ABC, abstractmethod
from datetime import datetime

from identity.domain.deletion_impact import DeletionImpact, DeletionTarget


class DeletionImpactStore(ABC):
    """Counts what ``delete`` of the other stores takes along; the thing itself is not counted.

    ``at`` decides what is live: sessions and access tokens that have not ended, expired or been revoked by then.
    Of what does not exist nothing falls.
    """

    @abstractmethod
    def count(self, target: DeletionTarget, id: str, now: datetime) -> DeletionImpact:  # noqa: A002
        """What falls with the thing of this id: with an organization the grants that it holds and gives, with a key or
        a service user's secret the live tokens that it obtained. With a project grant ``users`` are those who hold
        roles by it."""

    @abstractmethod
    def count_role_grants(self, project_id: str, key: str) -> DeletionImpact:
        """The user grants and project grants that hold a project's role: they lose it, and stay."""
