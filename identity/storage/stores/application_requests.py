"""The log of each application."""

from abc import ABC, abstractmethod
from collections.abc import Collection
from datetime import datetime

from identity.domain.application_requests import ApplicationRequest


class ApplicationRequestStore(ABC):
    """The latest requests of each application. They are deleted with it, and with the user they name."""

    @abstractmethod
    def add(self, requests: Collection[ApplicationRequest]) -> None:
        """Store requests, and delete what is then too much: of each of their applications the latest
        MAX_LOGGED_REQUESTS successful and as many refused ones stay. Requests of unknown applications are left out, and
        so are unknown users."""

    @abstractmethod
    def list_for_application(self, application_id: str) -> tuple[ApplicationRequest, ...]:
        """Latest first."""

    @abstractmethod
    def list_for_user(self, user_id: str) -> tuple[ApplicationRequest, ...]:
        """The requests that name the user, latest first."""

    @abstractmethod
    def delete_before(self, moment: datetime) -> int:
        """Delete earlier requests; returns their number."""
