"""Permissions, and the hierarchy of resources."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from identity.domain.projects import Project, ProjectGrant


class ManagerLevel(StrEnum):
    """The four levels at which managers hold roles (service description §2.6)."""

    INSTANCE = "instance"
    ORGANIZATION = "organization"
    PROJECT = "project"
    PROJECT_GRANT = "project_grant"


@dataclass(frozen=True, slots=True)
class ResourceKey:
    """Identifies a manageable resource."""

    level: ManagerLevel
    id: str


@dataclass(frozen=True, slots=True)
class Resource:
    """A manageable resource with everything above it. A role at any member of ``lineage`` applies to the resource.
    ``organization_id`` is the organization that owns it. A project grant also has a ``grantee``, the organization it
    was granted to: roles there apply to it with GRANTEE_PERMISSIONS only."""

    INSTANCE: ClassVar["Resource"]

    key: ResourceKey
    ancestors: tuple[ResourceKey, ...]
    organization_id: str | None
    grantee: ResourceKey | None = None

    @property
    def lineage(self) -> tuple[ResourceKey, ...]:
        """The resource itself and everything above it."""
        return (self.key, *self.ancestors)

    @property
    def holder_id(self) -> str | None:
        """The organization that uses the resource: the one it was granted to, or its owner; None for the instance."""
        return self.organization_id if self.grantee is None else self.grantee.id

    @staticmethod
    def of_organization(organization_id: str) -> "Resource":
        return Resource(ResourceKey(ManagerLevel.ORGANIZATION, organization_id), (INSTANCE_KEY,), organization_id)


INSTANCE_KEY = ResourceKey(ManagerLevel.INSTANCE, "instance")
Resource.INSTANCE = Resource(INSTANCE_KEY, (), None)


def project_resource(project: Project) -> Resource:
    owner = Resource.of_organization(project.organization_id)
    return Resource(ResourceKey(ManagerLevel.PROJECT, project.id), owner.lineage, project.organization_id)


def project_grant_resource(grant: ProjectGrant, project: Project) -> Resource:
    """The project grant as a resource: below its project, and granted to its organization."""
    owner = project_resource(project)
    holder = ResourceKey(ManagerLevel.ORGANIZATION, grant.organization_id)
    return Resource(ResourceKey(ManagerLevel.PROJECT_GRANT, grant.id), owner.lineage, project.organization_id, holder)


#: Every permission, "resource.action".
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
        "attribute": ("read", "write", "delete"),
        "upstream_provider": ("read", "write", "delete"),
        "webhook": ("read", "write", "delete"),
        "group": ("read", "write"),
        "user": ("read", "write", "delete", "impersonate"),
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

#: Permissions, besides those over the roles of its users, that decide how an organization's users sign in.
SIGN_IN_PERMISSIONS: frozenset[str] = frozenset(
    {"organization_domain.write", "organization_policy.write", "upstream_provider.write", "upstream_provider.delete"}
)
#: Permissions that INSTANCE_WRITE replaces in the instance's own organization: of how its administrators sign in, and
#: of where events about them are sent.
OWN_ORGANIZATION_PERMISSIONS: frozenset[str] = SIGN_IN_PERMISSIONS | {"webhook.write", "webhook.delete"}
#: Decides over the instance.
INSTANCE_WRITE = "instance.write"

#: What an organization may do with a project grant that it received: use it, not extend it.
GRANTEE_PERMISSIONS: frozenset[str] = frozenset(
    {
        "project_grant.read",
        "project_grant_manager.read",
        "project_grant_manager.write",
        "user_grant.read",
        "user_grant.write",
    }
)
