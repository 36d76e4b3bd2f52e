"""A service whose applications, projects, roles and organizations have one field more than the domain declares.

It is declared before anything else is imported, as if it stood in the domain, and its migration has run.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from identity.domain import applications, organizations, projects
from identity.domain.entity import entity, setting
from identity.domain.words import say

FIELD = "reads_aloud"
LABEL = say("Reads aloud")


@entity
class Application(applications.Application):
    """An application with a setting of which nobody else has heard."""

    reads_aloud: bool = setting(default=False, section=say("Tokens"), label=LABEL, hint=say("For those who listen."))


@entity
class Project(projects.Project):
    """A project with the same setting."""

    reads_aloud: bool = setting(default=False, label=LABEL)


@entity
class ProjectRole(projects.ProjectRole):
    """A role of a project with it."""

    reads_aloud: bool = setting(default=False, label=LABEL)


@entity
class Organization(organizations.Organization):
    """An organization with it."""

    reads_aloud: bool = setting(default=False, label=LABEL)


applications.Application = Application  # type: ignore[misc]
projects.Project = Project  # type: ignore[misc]
projects.ProjectRole = ProjectRole  # type: ignore[misc]
organizations.Organization = Organization  # type: ignore[misc]

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
