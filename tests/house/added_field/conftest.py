"""A service whose applications, projects, roles and organizations have one field more than the domain declares.

It is declared before anything else is imported, as if it stood in the domain, and its migration has run. Nothing
labels it, so forms and pages name it after itself.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from identity.domain import applications, organizations, projects
from identity.domain.entity import entity, mutable

FIELD = "reads_aloud"


@entity
class ApplicationWithField(applications.Application):
    """An application with a setting that the service does not know."""

    reads_aloud: bool = mutable(default=False)


@entity
class ProjectWithField(projects.Project):
    """A project with the same setting."""

    reads_aloud: bool = mutable(default=False)


@entity
class ProjectRoleWithField(projects.ProjectRole):
    """A role of a project with it."""

    reads_aloud: bool = mutable(default=False)


@entity
class OrganizationWithField(organizations.Organization):
    """An organization with it."""

    reads_aloud: bool = mutable(default=False)


applications.Application = ApplicationWithField  # type: ignore[misc]
projects.Project = ProjectWithField  # type: ignore[misc]
projects.ProjectRole = ProjectRoleWithField  # type: ignore[misc]
organizations.Organization = OrganizationWithField  # type: ignore[misc]

pytest_plugins = ["identity.testing.fixtures"]


@pytest.fixture(scope="session", autouse=True)
def migrated() -> None:
    """The one migration that the field needs."""
    from sqlalchemy import create_engine, text

    from identity.plugins.sql.backend import SqlBackend

    migrate: Callable[..., Sequence[str]] = SqlBackend.migrate

    def migrate_more(self: Any, *, dry_run: bool = False) -> Sequence[str]:
        planned = migrate(self, dry_run=dry_run)
        if planned and not dry_run:
            engine = create_engine(self._settings.database_url())
            with engine.begin() as connection:
                for table in ("applications", "projects", "project_roles", "organizations"):
                    connection.execute(text(f"ALTER TABLE {table} ADD COLUMN {FIELD} BOOLEAN NOT NULL DEFAULT FALSE"))
            engine.dispose()
        return planned

    SqlBackend.migrate = migrate_more  # type: ignore[method-assign]
