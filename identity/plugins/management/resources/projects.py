"""Projects: what applications and roles belong to."""

from identity.domain import projects
from identity.plugins.management.api_resource import EntityApiResource
from identity.plugins.management.entity_paths import ORGANIZATION, ORGANIZATION_OR_CHILD, PROJECT
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands.projects import ChangeProject, CreateProject
from identity.storage.stores.projects import PROJECT_SORT_KEYS


@representation_fields(projects.Project)
class ProjectRepresentation(Representation):
    """A project. `assert_roles` always adds users' roles to userinfo, `check_roles` refuses users without any role."""


_PROJECTS = EntityApiResource(
    "project",
    ProjectRepresentation,
    at=PROJECT,
    change_command=ChangeProject,
    service=lambda services: services.projects,
)

OPERATIONS = (
    _PROJECTS.list(
        ORGANIZATION_OR_CHILD / "projects",
        "Lists the projects of an organization, by name by default.",
        lambda call: call.services.projects.page(call.entity.id, call.page, principal=call.principal),
        orders=PROJECT_SORT_KEYS,
        description="Managers of single projects get only those.",
    ),
    _PROJECTS.create(
        "create_project",
        ORGANIZATION / "projects",
        "Creates a project.",
        CreateProject,
        lambda call, command: call.services.projects.create(call.entity.id, command, principal=call.principal),
        location="/projects/{id}",
        description="A caller who may only create projects becomes its PROJECT_OWNER.",
        permission="project.create",
    ),
    _PROJECTS.show("Shows a project."),
    _PROJECTS.update("Changes a project's name and settings."),
    _PROJECTS.deactivate("Deactivates a project: its applications stop working until it is reactivated."),
    _PROJECTS.reactivate("Reactivates a project."),
    _PROJECTS.remove("Deletes a project with its applications, roles and grants."),
)
