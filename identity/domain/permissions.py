"""Permission names, and which resource lies below which."""

from dataclasses import dataclass
from enum import StrEnum

from identity.domain.projects import Project, ProjectGrant


class ManagerLevel(StrEnum):
    """The four levels at which managers hold roles (service description §2.6)."""

    INSTANCE = "instance"
    ORGANIZATION = "organization"
    PROJECT = "project"
    PROJECT_GRANT = "project_grant"


@dataclass(frozen=True, slots=True)
class ResourceKey:
    """Names one manageable resource."""

    level: ManagerLevel
    id: str


@dataclass(frozen=True, slots=True)
class Resource:
    """A manageable resource with everything above it.

    A role held at any member of ``lineage`` reaches the resource. ``organization_id`` names the organization that the
    resource belongs to. A project grant also has a ``grantee``, the organization that it was granted to: roles held
    there reach it with HOLDER_PERMISSIONS alone.
    """

    key: ResourceKey
    ancestors: tuple[ResourceKey, ...]
    organization_id: str | None
    grantee: ResourceKey | None = None

    @property
    def lineage(self) -> tuple[ResourceKey, ...]:
        """The resource itself and all that lies above it."""
        return (self.key, *self.ancestors)


INSTANCE_KEY = ResourceKey(ManagerLevel.INSTANCE, "instance")
INSTANCE_RESOURCE = Resource(INSTANCE_KEY, (), None)


def organization_resource(organization_id: str) -> Resource:
    """The organization as a resource: below the instance."""
    return Resource(ResourceKey(ManagerLevel.ORGANIZATION, organization_id), (INSTANCE_KEY,), organization_id)


def project_resource(project: Project) -> Resource:
    """The project as a resource: below its organization."""
    owner = organization_resource(project.organization_id)
    return Resource(ResourceKey(ManagerLevel.PROJECT, project.id), owner.lineage, project.organization_id)


def project_grant_resource(grant: ProjectGrant, project: Project) -> Resource:
    """The project grant as a resource: below its project, and held by the organization it was granted to."""
    owner = project_resource(project)
    holder = ResourceKey(ManagerLevel.ORGANIZATION, grant.organization_id)
    return Resource(ResourceKey(ManagerLevel.PROJECT_GRANT, grant.id), owner.lineage, project.organization_id, holder)


#: Every permission, "resource.action". Roles from plugins may name only these.
PERMISSIONS: frozenset[str] = frozenset(
    f"{resource}.{action}"
    for resource, actions in {
        "instance": ("read", "write"),
        "instance_manager": ("read", "write"),
        "signing_key": ("read", "write"),
        "legal_hold": ("read", "write"),
        "audit_event": ("read",),
        "organization": ("read", "create", "write", "delete"),
        "organization_manager": ("read", "write"),
        "organization_domain": ("write",),
        "organization_policy": ("write",),
        "upstream_provider": ("read", "write", "delete"),
        "user": ("read", "write", "delete"),
        "service_user": ("read", "write", "delete"),
        "session": ("read", "delete"),
        "project": ("read", "create", "write", "delete"),
        "project_manager": ("read", "write"),
        "project_role": ("read", "write"),
        "application": ("read", "write", "delete"),
        "project_grant": ("read", "write", "delete"),
        "project_grant_manager": ("read", "write"),
        "user_grant": ("read", "write"),
    }.items()
    for action in actions
)

#: What it takes to say whose sign-ins an organization's people have to pass, beside the roles of its people.
SIGN_IN_PERMISSIONS: frozenset[str] = frozenset(
    {"organization_domain.write", "organization_policy.write", "upstream_provider.write", "upstream_provider.delete"}
)
#: What these take in the instance's own organization, and what decides over the instance.
INSTANCE_WRITE = "instance.write"

#: What an organization may do with a project grant that it holds: use it, not widen it.
GRANTEE_PERMISSIONS: frozenset[str] = frozenset(
    {
        "project_grant.read",
        "project_grant_manager.read",
        "project_grant_manager.write",
        "user_grant.read",
        "user_grant.write",
    }
)
