"""A service whose applications, projects, project roles and organizations have a field more than the domain declares.

The subclasses replace the entities before anything else is imported, as if the field were declared there, and its
migration has run. The field has no label, so forms and pages show its name.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from identity.domain import applications, organizations, projects
from identity.domain.entity import entity, mutable

FIELD = "reads_aloud"


@entity
class ApplicationWithField(applications.Application):
    """An application with a field that the service does not know."""

    reads_aloud: bool = mutable(default=False)


@entity
class ProjectWithField(projects.Project):
    reads_aloud: bool = mutable(default=False)


@entity
class ProjectRoleWithField(projects.ProjectRole):
    reads_aloud: bool = mutable(default=False)


@entity
class OrganizationWithField(organizations.Organization):
    reads_aloud: bool = mutable(default=False)


applications.Application = ApplicationWithField  # type: ignore[misc]
projects.Project = ProjectWithField  # type: ignore[misc]
projects.ProjectRole = ProjectRoleWithField  # type: ignore[misc]
organizations.Organization = OrganizationWithField  # type: ignore[misc]

pytest_plugins = ["identity.testing.fixtures"]


@pytest.fixture(scope="session", autouse=True)
def migrated() -> None:
    """Run the only migration that the field needs."""
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
