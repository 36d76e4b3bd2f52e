"""The manager roles of the four levels (service description §2.6), ORG_OWNER first."""

from collections.abc import Iterable

from identity.api.entities import ManagerLevel, ManagerRole
from identity.api.pages import gettext_lazy
from identity.api.plugins import hookimpl

_READS = frozenset(permission for permission in ManagerRole.PERMISSIONS if permission.endswith(".read"))


def _permissions_for(*resources: str) -> frozenset[str]:
    """Every permission on these resources."""
    return frozenset(permission for permission in ManagerRole.PERMISSIONS if permission.partition(".")[0] in resources)


_GRANT = _permissions_for("project_grant_manager", "user_grant") | {"project_grant.read"}
_PROJECT = _permissions_for("project_role", "application", "project_grant", "project_manager") | _GRANT
_PROJECT |= {"project.read", "project.write", "project.delete"}
_USERS = _permissions_for("user", "service_user", "session")
_SIGN_IN = _permissions_for("organization_domain", "organization_policy", "upstream_provider")
_ORGANIZATION = _USERS | _permissions_for("project", "organization_manager") | _SIGN_IN | _PROJECT
_ORGANIZATION |= {"organization.read", "organization.write", "organization.delete", "audit_event.read"}
_ORGANIZATION_READS = _ORGANIZATION & _READS

ROLES = (
    ManagerRole(
        name="ORG_OWNER",
        level=ManagerLevel.ORGANIZATION,
        permissions=_ORGANIZATION,
        description=gettext_lazy("Manages everything within the organization."),
    ),
    ManagerRole(
        name="ORG_OWNER_VIEWER",
        level=ManagerLevel.ORGANIZATION,
        permissions=_ORGANIZATION_READS,
        description=gettext_lazy("Sees everything within the organization."),
    ),
    ManagerRole(
        name="ORG_USER_MANAGER",
        level=ManagerLevel.ORGANIZATION,
        permissions=_USERS
        | _permissions_for("user_grant")
        | {"organization.read", "project.read", "project_role.read"},
        description=gettext_lazy("Manages users, service users and user grants."),
    ),
    ManagerRole(
        name="ORG_USER_PERMISSION_EDITOR",
        level=ManagerLevel.ORGANIZATION,
        permissions=_permissions_for("user_grant")
        | {"organization.read", "user.read", "service_user.read", "project.read", "project_role.read"},
        description=gettext_lazy("Manages user grants."),
    ),
    ManagerRole(
        name="ORG_PROJECT_PERMISSION_EDITOR",
        level=ManagerLevel.ORGANIZATION,
        permissions=_permissions_for("user_grant", "project_grant")
        | {"organization.read", "user.read", "service_user.read", "project.read", "project_role.read"},
        description=gettext_lazy("Manages user grants and project grants."),
    ),
    ManagerRole(
        name="ORG_PROJECT_CREATOR",
        level=ManagerLevel.ORGANIZATION,
        permissions=frozenset({"organization.read", "project.create"}),
        description=gettext_lazy("Creates projects and becomes their PROJECT_OWNER."),
    ),
    ManagerRole(
        name="ORG_SETTINGS_MANAGER",
        level=ManagerLevel.ORGANIZATION,
        permissions=frozenset({"organization.read", "organization.write"}),
        description=gettext_lazy("Changes the organization's name, branding, texts and languages."),
    ),
    ManagerRole(
        name="IAM_OWNER",
        level=ManagerLevel.INSTANCE,
        permissions=ManagerRole.PERMISSIONS,
        description=gettext_lazy("Manages the whole instance."),
    ),
    ManagerRole(
        name="IAM_OWNER_VIEWER",
        level=ManagerLevel.INSTANCE,
        permissions=_READS,
        description=gettext_lazy("Sees the whole instance."),
    ),
    ManagerRole(
        name="IAM_ORG_MANAGER",
        level=ManagerLevel.INSTANCE,
        permissions=_ORGANIZATION | {"organization.create"},
        description=gettext_lazy("Manages all organizations, nothing of the instance."),
    ),
    ManagerRole(
        name="IAM_USER_MANAGER",
        level=ManagerLevel.INSTANCE,
        permissions=_USERS
        | _permissions_for("user_grant")
        | {"organization.read", "project.read", "project_role.read"},
        description=gettext_lazy("Manages users of all organizations."),
    ),
    ManagerRole(
        name="PROJECT_OWNER",
        level=ManagerLevel.PROJECT,
        permissions=_PROJECT,
        description=gettext_lazy("Manages the project."),
    ),
    ManagerRole(
        name="PROJECT_OWNER_VIEWER",
        level=ManagerLevel.PROJECT,
        permissions=_PROJECT & _READS,
        description=gettext_lazy("Sees the project."),
    ),
    ManagerRole(
        name="PROJECT_GRANT_OWNER",
        level=ManagerLevel.PROJECT_GRANT,
        permissions=_GRANT,
        description=gettext_lazy("Manages managers and user grants of the project grant."),
    ),
    ManagerRole(
        name="PROJECT_GRANT_OWNER_VIEWER",
        level=ManagerLevel.PROJECT_GRANT,
        permissions=_GRANT & _READS,
        description=gettext_lazy("Sees the project grant."),
    ),
)


class ManagerRolesPlugin:
    """The built-in manager roles."""

    hookspecs = 1

    @hookimpl
    def identity_manager_roles(self) -> Iterable[ManagerRole]:
        """All of ROLES."""
        return ROLES
