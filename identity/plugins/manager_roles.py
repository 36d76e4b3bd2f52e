"""The manager roles of the four levels (service description §2.6), ORG_OWNER first."""

from collections.abc import Iterable, Mapping

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
#: Only for those who manage all of an organization: it shows them what people see in their applications.
_IMPERSONATION = frozenset({"user.impersonate"})
_USERS = (_permissions_for("user", "service_user", "session", "group") | {"attribute.read"}) - _IMPERSONATION
_SIGN_IN = _permissions_for("organization_domain", "organization_policy", "upstream_provider", "webhook")
_ORGANIZATION = (
    _USERS | _IMPERSONATION | _permissions_for("attribute", "project", "organization_manager") | _SIGN_IN | _PROJECT
)
_ORGANIZATION |= {"organization.read", "organization.write", "organization.delete", "audit_event.read"}
_GRANTS = _permissions_for("user_grant")
_CONTEXT = frozenset({"organization.read", "project.read", "project_role.read"})
_GRANTEES = _CONTEXT | {"user.read", "service_user.read", "group.read"}

#: Permissions and description by level and name.
_ROLES: Mapping[ManagerLevel, Mapping[str, tuple[frozenset[str], str]]] = {
    ManagerLevel.ORGANIZATION: {
        "ORG_OWNER": (_ORGANIZATION, gettext_lazy("Manages everything within the organization.")),
        "ORG_OWNER_VIEWER": (_ORGANIZATION & _READS, gettext_lazy("Sees everything within the organization.")),
        "ORG_USER_MANAGER": (
            _USERS | _GRANTS | _CONTEXT,
            gettext_lazy("Manages users, service users and user grants."),
        ),
        "ORG_USER_PERMISSION_EDITOR": (_GRANTS | _GRANTEES, gettext_lazy("Manages user grants.")),
        "ORG_PROJECT_PERMISSION_EDITOR": (
            _GRANTS | _permissions_for("project_grant") | _GRANTEES,
            gettext_lazy("Manages user grants and project grants."),
        ),
        "ORG_PROJECT_CREATOR": (
            frozenset({"organization.read", "project.create"}),
            gettext_lazy("Creates projects and becomes their PROJECT_OWNER."),
        ),
        "ORG_SETTINGS_MANAGER": (
            frozenset({"organization.read", "organization.write"}),
            gettext_lazy("Changes the organization's name, branding, texts and languages."),
        ),
    },
    ManagerLevel.INSTANCE: {
        "IAM_OWNER": (ManagerRole.PERMISSIONS, gettext_lazy("Manages the whole instance.")),
        "IAM_OWNER_VIEWER": (_READS, gettext_lazy("Sees the whole instance.")),
        "IAM_ORG_MANAGER": (
            _ORGANIZATION | {"organization.create"},
            gettext_lazy("Manages all organizations, nothing of the instance."),
        ),
        "IAM_USER_MANAGER": (_USERS | _GRANTS | _CONTEXT, gettext_lazy("Manages users of all organizations.")),
    },
    ManagerLevel.PROJECT: {
        "PROJECT_OWNER": (_PROJECT, gettext_lazy("Manages the project.")),
        "PROJECT_OWNER_VIEWER": (_PROJECT & _READS, gettext_lazy("Sees the project.")),
    },
    ManagerLevel.PROJECT_GRANT: {
        "PROJECT_GRANT_OWNER": (_GRANT, gettext_lazy("Manages managers and user grants of the project grant.")),
        "PROJECT_GRANT_OWNER_VIEWER": (_GRANT & _READS, gettext_lazy("Sees the project grant.")),
    },
}

_LABELS = {
    "ORG_OWNER": gettext_lazy("Organization owner"),
    "ORG_OWNER_VIEWER": gettext_lazy("Organization viewer"),
    "ORG_USER_MANAGER": gettext_lazy("User manager"),
    "ORG_USER_PERMISSION_EDITOR": gettext_lazy("User grant editor"),
    "ORG_PROJECT_PERMISSION_EDITOR": gettext_lazy("Grant editor"),
    "ORG_PROJECT_CREATOR": gettext_lazy("Project creator"),
    "ORG_SETTINGS_MANAGER": gettext_lazy("Settings manager"),
    "IAM_OWNER": gettext_lazy("Instance owner"),
    "IAM_OWNER_VIEWER": gettext_lazy("Instance viewer"),
    "IAM_ORG_MANAGER": gettext_lazy("Manager of all organizations"),
    "IAM_USER_MANAGER": gettext_lazy("Manager of all users"),
    "PROJECT_OWNER": gettext_lazy("Project owner"),
    "PROJECT_OWNER_VIEWER": gettext_lazy("Project viewer"),
    "PROJECT_GRANT_OWNER": gettext_lazy("Project grant owner"),
    "PROJECT_GRANT_OWNER_VIEWER": gettext_lazy("Project grant viewer"),
}

ROLES = tuple(
    ManagerRole(name=name, level=level, permissions=permissions, description=description, label=_LABELS[name])
    for level, roles in _ROLES.items()
    for name, (permissions, description) in roles.items()
)


class ManagerRolesPlugin:
    """The built-in manager roles."""

    hookspecs = 1

    @hookimpl
    def identity_manager_roles(self) -> Iterable[ManagerRole]:
        """All of ROLES."""
        return ROLES
