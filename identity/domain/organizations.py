"""Organizations: the tenants that own users and projects."""

from datetime import datetime

from identity.domain.entity import entity, internal, mutable, read_only, versioned
from identity.domain.names import display_name_error, domain_name_error
from identity.domain.search import search_text


@entity
class Organization:
    """A tenant. ``primary_domain`` is unique in the instance and part of every login name. ``registration`` allows
    users to register themselves. ``branded`` says that it has a Branding."""

    id: str = read_only()
    name: str = mutable(validator=display_name_error)
    primary_domain: str = mutable(validator=domain_name_error)
    created_at: datetime = versioned()
    changed_at: datetime = versioned()
    registration: bool = mutable(default=False)
    branded: bool = internal(default=False)
    active: bool = read_only(default=True)
    version: int = versioned(default=1)

    @property
    def search_text(self) -> str:
        return search_text(self.name, self.primary_domain)
