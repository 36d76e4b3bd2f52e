"""Leases: which node does a piece of background work."""

from abc import ABC, abstractmethod
from datetime import datetime


class LeaseStore(ABC):
    """One row per name."""

    @abstractmethod
    def acquire(self, name: str, *, at: datetime, until: datetime) -> bool:
        """Take the lease until then by one conditional write; False while another holds it."""
