"""Effects: what falls with a thing that is deleted or deactivated, in numbers."""

from dataclasses import dataclass
from enum import StrEnum


class DeletionTarget(StrEnum):
    """What is removed or deactivated, and takes other things along."""

    ORGANIZATION = "organization"
    PROJECT = "project"
    PROJECT_GRANT = "project_grant"
    APPLICATION = "application"
    USER = "user"
    KEY = "key"
    SECRET = "secret"  # noqa: S105

    @classmethod
    def from_kind(cls, kind: str) -> "DeletionTarget":
        """What a thing of this kind counts as: users and service users are both users."""
        return cls(kind.removeprefix("service_"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionImpact:
    """How many of what go along; live ones alone where things end by themselves (sessions, tokens)."""

    users: int = 0
    service_users: int = 0
    projects: int = 0
    applications: int = 0
    roles: int = 0
    project_grants: int = 0
    user_grants: int = 0
    managers: int = 0
    keys: int = 0
    secrets: int = 0
    personal_access_tokens: int = 0
    sessions: int = 0
    live_tokens: int = 0
