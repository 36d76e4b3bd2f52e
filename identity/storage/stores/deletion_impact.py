"""Counts of what a deletion would remove."""

from abc import ABC, abstractmethod
from datetime import datetime

from identity.domain.deletion_impact import DeletionImpact, DeletionTarget


class DeletionImpactStore(ABC):
    """Counts what ``delete`` of the other stores removes besides the entity itself. ``now`` decides which sessions and
    access tokens are live: those not ended, expired or revoked by then. All counts are zero for an unknown entity, and
    exact up to 1,000 objects of each kind; beyond, a backend may count less (``is_exact``)."""

    @abstractmethod
    def count(self, target: DeletionTarget, id: str, now: datetime) -> DeletionImpact:
        """Counts for the entity with this id: for an organization including grants that it has received and given, for
        a key or secret of a service user the live tokens obtained with it. For a project grant, ``users`` are those
        with roles by it."""

    @abstractmethod
    def count_role_grants(self, project_id: str, key: str) -> DeletionImpact:
        """Number of user grants and project grants that contain a project's role: they lose it, and stay."""
