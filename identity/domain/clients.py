"""OAuth clients: applications, and service users with a client secret."""

from dataclasses import dataclass

from identity.domain.applications import ApplicationClient
from identity.domain.organizations import Organization
from identity.domain.users import Subject


@dataclass(frozen=True, slots=True)
class ServiceUserClient:
    """A service user that acts as its own client, authenticated by the secret with this id."""

    subject: Subject
    secret_id: str

    @property
    def id(self) -> str:
        """The client id: the user's id. Application ids have another form."""
        return self.subject.user.id

    @property
    def organization(self) -> Organization:
        return self.subject.organization


#: Both have an id, which tokens name as their client, and an organization.
Client = ApplicationClient | ServiceUserClient
