"""Who authenticates as a client: an application, or a service user with a secret of its own."""

from dataclasses import dataclass

from identity.domain.applications import ApplicationClient
from identity.domain.organizations import Organization
from identity.domain.users import Subject


@dataclass(frozen=True, slots=True)
class ServiceUserClient:
    """A service user that is its own client, since it showed the secret with this id."""

    subject: Subject
    secret_id: str

    @property
    def id(self) -> str:
        """The client id: the user's id. No application has one of this form."""
        return self.subject.user.id

    @property
    def organization(self) -> Organization:
        """The user's organization."""
        return self.subject.organization


#: Both have an id, which tokens name as their client, and an organization.
Client = ApplicationClient | ServiceUserClient
