"""The manager roles of the four levels (service description §2.6), ORG_OWNER first."""

from collections.abc import Iterable
from dataclasses import dataclass

from identity import hookimpl
from identity.domain.managers import Role
from identity.domain.permissions import PERMISSIONS, Level
from identity.domain.words import say

_READS = frozenset(permission for permission in PERMISSIONS if permission.endswith(".read"))


def _of(*resources: str) -> frozenset[str]:
    """Every permission on these resources."""
    return frozenset(permission for permission in PERMISSIONS if permission.partition(".")[0] in resources)


_GRANT = _of("project_grant_manager", "user_grant") | {"project_grant.read"}
_PROJECT = _of("project_role", "application", "project_grant", "project_manager") | _GRANT
_PROJECT |= {"project.read", "project.write", "project.delete"}
_USERS = _of("user", "service_user", "session")
_SIGN_IN = _of("organization_domain", "organization_policy", "upstream_provider")
_ORGANIZATION = _USERS | _of("project", "organization_manager") | _SIGN_IN | _PROJECT
_ORGANIZATION |= {"organization.read", "organization.write", "organization.delete", "audit_event.read"}
_ORGANIZATION_READS = _ORGANIZATION & _READS

ROLES = (
    Role(
        name="ORG_OWNER",
        level=Level.ORGANIZATION,
        permissions=_ORGANIZATION,
        description=say("Manages everything within the organization."),
    ),
    Role(
        name="ORG_OWNER_VIEWER",
        level=Level.ORGANIZATION,
        permissions=_ORGANIZATION_READS,
        description=say("Sees everything within the organization."),
    ),
    Role(
        name="ORG_USER_MANAGER",
        level=Level.ORGANIZATION,
        permissions=_USERS | _of("user_grant") | {"organization.read", "project.read", "project_role.read"},
        description=say("Manages users, service users and user grants."),
    ),
    Role(
        name="ORG_USER_PERMISSION_EDITOR",
        level=Level.ORGANIZATION,
        permissions=_of("user_grant")
        | {"organization.read", "user.read", "service_user.read", "project.read", "project_role.read"},
        description=say("Manages user grants."),
    ),
    Role(
        name="ORG_PROJECT_PERMISSION_EDITOR",
        level=Level.ORGANIZATION,
        permissions=_of("user_grant", "project_grant")
        | {"organization.read", "user.read", "service_user.read", "project.read", "project_role.read"},
        description=say("Manages user grants and project grants."),
    ),
    Role(
        name="ORG_PROJECT_CREATOR",
        level=Level.ORGANIZATION,
        permissions=frozenset({"organization.read", "project.create"}),
        description=say("Creates projects and becomes their PROJECT_OWNER."),
    ),
    Role(
        name="ORG_SETTINGS_MANAGER",
        level=Level.ORGANIZATION,
        permissions=frozenset({"organization.read", "organization.write"}),
        description=say("Changes the organization's name, branding, texts and languages."),
    ),
    Role(
        name="IAM_OWNER",
        level=Level.INSTANCE,
        permissions=PERMISSIONS,
        description=say("Manages the whole instance."),
    ),
    Role(
        name="IAM_OWNER_VIEWER",
        level=Level.INSTANCE,
        permissions=_READS,
        description=say("Sees the whole instance."),
    ),
    Role(
        name="IAM_ORG_MANAGER",
        level=Level.INSTANCE,
        permissions=_ORGANIZATION | {"organization.create"},
        description=say("Manages all organizations, nothing of the instance."),
    ),
    Role(
        name="IAM_USER_MANAGER",
        level=Level.INSTANCE,
        permissions=_USERS | _of("user_grant") | {"organization.read", "project.read", "project_role.read"},
        description=say("Manages users of all organizations."),
    ),
    Role(
        name="PROJECT_OWNER",
        level=Level.PROJECT,
        permissions=_PROJECT,
        description=say("Manages the project."),
    ),
    Role(
        name="PROJECT_OWNER_VIEWER",
        level=Level.PROJECT,
        permissions=_PROJECT & _READS,
        description=say("Sees the project."),
    ),
    Role(
        name="PROJECT_GRANT_OWNER",
        level=Level.PROJECT_GRANT,
        permissions=_GRANT,
        description=say("Manages managers and user grants of the project grant."),
    ),
    Role(
        name="PROJECT_GRANT_OWNER_VIEWER",
        level=Level.PROJECT_GRANT,
        permissions=_GRANT & _READS,
        description=say("Sees the project grant."),
    ),
)


class Plugin:
    """Offers the named manager roles."""

    hookspecs = 1

    @dataclass(frozen=True)
    class Settings:
        """None."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_manager_roles(self) -> Iterable[Role]:
        """All of ROLES."""
        return ROLES
