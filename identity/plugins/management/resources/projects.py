"""Projects: what applications and roles belong to."""

from identity.domain import projects
from identity.http import route_contexts
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands.projects import ChangeProject, CreateProject
from identity.storage.stores.projects import PROJECT_SORT_KEYS


@representation_fields(projects.Project)
class ProjectRepresentation(Representation):
    """A project. `assert_roles` puts users' roles into userinfo unasked, `check_roles` refuses users without any."""


_PROJECTS = ApiResource(
    kind="project",
    representation=ProjectRepresentation,
    path="/projects/{project}",
    list_path="/organizations/{organization}/projects",
    context_factory=route_contexts.project_context,
    parent_context_factory=route_contexts.organization_context,
)

OPERATIONS = (
    _PROJECTS.list_operation(
        "Lists the projects of an organization, by name unless said otherwise.",
        lambda call: call.services.projects.page(call.entity.id, call.page, principal=call.principal),
        orders=PROJECT_SORT_KEYS,
        owner=route_contexts.organization_or_child_context,
        description="Who manages single projects gets these alone.",
    ),
    _PROJECTS.create_operation(
        "create",
        "Creates a project.",
        CreateProject,
        lambda call: call.services.projects.create(call.entity.id, call.command, principal=call.principal),
        description="Who may create projects and no more becomes its PROJECT_OWNER.",
        permission="project.create",
    ),
    _PROJECTS.get_operation("Shows a project."),
    _PROJECTS.update_operation("Changes a project's name and settings.", ChangeProject),
    _PROJECTS.deactivate_operation("Deactivates a project: its applications stop working until it is reactivated."),
    _PROJECTS.reactivate_operation("Reactivates a project."),
    _PROJECTS.delete_operation("Deletes a project with its applications, roles and grants."),
)
