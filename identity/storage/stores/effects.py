"""What falls with a thing, in numbers."""

from abc import ABC, abstractmethod
from datetime import datetime

from identity.domain.effects import Effects


class EffectStore(ABC):
    """Counts what ``remove`` of the other stores takes along; the thing itself is not counted.

    ``at`` decides what is live: sessions and access tokens that have not ended, expired or been revoked by then.
    Of what does not exist nothing falls.
    """

    @abstractmethod
    def of_organization(self, organization_id: str, at: datetime) -> Effects:
        """What falls with an organization, grants that it holds and gives included."""

    @abstractmethod
    def of_project(self, project_id: str, at: datetime) -> Effects:
        """What falls with a project."""

    @abstractmethod
    def of_application(self, application_id: str, at: datetime) -> Effects:
        """What falls with an application."""

    @abstractmethod
    def of_user(self, user_id: str, at: datetime) -> Effects:
        """What falls with a user of either kind."""

    @abstractmethod
    def of_key(self, key_id: str, at: datetime) -> Effects:
        """What falls with a service user's key: the live tokens that it obtained."""

    @abstractmethod
    def of_secret(self, secret_id: str, at: datetime) -> Effects:
        """What falls with a secret: the live tokens that a service user obtained with it, none with a client's."""

    @abstractmethod
    def of_project_grant(self, grant_id: str, at: datetime) -> Effects:
        """What falls with a project grant; ``users`` are the users who hold roles by it."""

    @abstractmethod
    def of_role(self, project_id: str, key: str) -> Effects:
        """The user grants and project grants that hold a project's role: they lose it, and stay."""
