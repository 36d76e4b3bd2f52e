"""Projects, their roles, their grants to other organizations, and the roles given to users."""

from dataclasses import dataclass
from datetime import datetime

from identity.domain.search import search_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """What applications and roles belong to.

    ``assert_roles`` puts the user's project roles into userinfo and introspection unasked; ``check_roles``
    refuses users who hold no role in the project.
    """

    id: str
    organization_id: str
    name: str
    created_at: datetime
    changed_at: datetime
    assert_roles: bool = False
    check_roles: bool = False
    active: bool = True
    version: int = 1

    @property
    def search_text(self) -> str:
        """Where searches look for it."""
        return search_text(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRole:
    """A role that applications of the project understand; ``key`` never changes."""

    project_id: str
    key: str
    display_name: str
    group: str = ""
    version: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectGrant:
    """A project granted to another organization, with the roles which that organization may give on.

    Nobody asks that organization. It is ``accepted`` once somebody who gives roles there has made the grant, or has
    given a role from it: until then the project's applications are strangers to its people.
    """

    id: str
    project_id: str
    organization_id: str
    roles: frozenset[str]
    created_at: datetime
    changed_at: datetime
    accepted: bool = False
    active: bool = True
    version: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class UserGrant:
    """Project roles given to a user; ``project_grant_id`` is set where they derive from a project grant."""

    id: str
    user_id: str
    organization_id: str
    project_id: str
    roles: frozenset[str]
    created_at: datetime
    changed_at: datetime
    project_grant_id: str | None = None
    active: bool = True
    version: int = 1
