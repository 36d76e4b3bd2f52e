"""How much is deleted or deactivated along with an object."""

from dataclasses import dataclass
from enum import StrEnum

#: Objects of each kind that are counted.
MAX_COUNTED_OBJECTS = 1000


class DeletionTarget(StrEnum):
    """Objects whose deletion or deactivation affects others."""

    ORGANIZATION = "organization"
    PROJECT = "project"
    PROJECT_GRANT = "project_grant"
    APPLICATION = "application"
    USER = "user"
    KEY = "key"
    SECRET = "secret"  # noqa: S105
    FEDERATED_CREDENTIAL = "federated_credential"

    @classmethod
    def from_kind(cls, kind: str) -> "DeletionTarget":
        """The target for a kind of object; users and service users share one."""
        return cls(kind.removeprefix("service_"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionImpact:
    """Numbers of affected objects; of those that expire (sessions, tokens) only live ones count. Of a group, its roles
    in a project count as the group. Without ``is_exact`` there are too many to count all, and every number is a lower
    bound."""

    users: int = 0
    service_users: int = 0
    projects: int = 0
    applications: int = 0
    roles: int = 0
    project_grants: int = 0
    user_grants: int = 0
    managers: int = 0
    groups: int = 0
    keys: int = 0
    secrets: int = 0
    personal_access_tokens: int = 0
    sessions: int = 0
    live_tokens: int = 0
    is_exact: bool = True
