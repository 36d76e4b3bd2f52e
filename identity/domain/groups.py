"""Groups of an organization, their members, and the roles that they give."""

from datetime import datetime

from identity.domain.entity import entity, mutable, read_only, versioned
from identity.domain.expirations import TimeLimited, earliest
from identity.domain.managers import Manager
from identity.domain.names import display_name_error
from identity.domain.permissions import ResourceKey
from identity.domain.projects import UserGrant, role_key_error
from identity.domain.search import search_text
from identity.domain.validators import text_problem


@entity
class Group:
    """People and service users of one organization who have roles together. While it is inactive, its members do not
    have its roles."""

    id: str = read_only()
    organization_id: str = read_only()
    name: str = mutable(validator=display_name_error)
    description: str = mutable(default="", validator=text_problem)
    created_at: datetime = versioned()
    changed_at: datetime = versioned()
    active: bool = read_only(default=True)
    version: int = versioned(default=1)

    @property
    def search_text(self) -> str:
        return search_text(self.name)


@entity
class GroupMember(TimeLimited):
    """A user in a group of their organization, possibly ``until`` a moment. ``mapping_id`` is the group mapping that
    added them; None if a manager did."""

    id: str = read_only()
    group_id: str = read_only()
    user_id: str = read_only()
    organization_id: str = read_only()
    created_at: datetime = versioned()
    changed_at: datetime = versioned()
    mapping_id: str | None = read_only(default=None)
    until: datetime | None = mutable(default=None)
    version: int = versioned(default=1)


@entity
class GroupGrant(TimeLimited):
    """Project roles of all members of a group, possibly ``until`` a moment; ``project_grant_id`` is set if they derive
    from a project grant."""

    id: str = read_only()
    group_id: str = read_only()
    organization_id: str = read_only()
    project_id: str = read_only()
    roles: frozenset[str] = mutable(item_validator=role_key_error)
    created_at: datetime = versioned()
    changed_at: datetime = versioned()
    project_grant_id: str | None = read_only(default=None)
    until: datetime | None = mutable(default=None)
    version: int = versioned(default=1)

    def for_member(self, member: GroupMember) -> UserGrant:
        """What the grant is for a member."""
        return UserGrant(
            id=self.id,
            user_id=member.user_id,
            organization_id=self.organization_id,
            project_id=self.project_id,
            roles=self.roles,
            created_at=self.created_at,
            changed_at=self.changed_at,
            project_grant_id=self.project_grant_id,
            until=earliest((self.until, member.until)),
            version=self.version,
        )


@entity
class GroupManager(TimeLimited):
    """Manager roles of all members of a group at one resource, possibly ``until`` a moment: at their organization, one
    of its projects, or a project grant that it holds."""

    id: str = read_only()
    group_id: str = read_only()
    organization_id: str = read_only()
    resource: ResourceKey = read_only()
    roles: frozenset[str] = mutable()
    created_at: datetime = versioned()
    changed_at: datetime = versioned()
    until: datetime | None = mutable(default=None)
    version: int = versioned(default=1)

    def for_member(self, member: GroupMember, owner_id: str) -> Manager:
        """What the roles are for a member. ``owner_id`` is the organization that owns the resource."""
        return Manager(
            id=self.id,
            user_id=member.user_id,
            resource=self.resource,
            roles=self.roles,
            created_at=self.created_at,
            changed_at=self.changed_at,
            organization_id=owner_id,
            until=earliest((self.until, member.until)),
            version=self.version,
        )
