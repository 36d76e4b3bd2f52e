"""Projects: what applications and roles belong to."""

from identity.domain import projects
from identity.http import targets
from identity.plugins.management.representation import Representation, showing
from identity.plugins.management.resource import Resource
from identity.services.commands.projects import ChangeProject, CreateProject
from identity.storage.stores.projects import ORDERS


@showing(projects.Project)
class Project(Representation):
    """A project. `assert_roles` puts users' roles into userinfo unasked, `check_roles` refuses users without any."""


_PROJECTS = Resource(
    kind="project",
    answers=Project,
    path="/projects/{project}",
    list_path="/organizations/{organization}/projects",
    target=targets.project,
    owner=targets.organization,
)

OPERATIONS = (
    _PROJECTS.lists(
        "Lists the projects of an organization, by name unless said otherwise.",
        lambda call: call.services.projects.page(call.value.id, call.page, by=call.by),
        orders=ORDERS,
        owner=targets.organization_or_part,
        description="Who manages single projects gets these alone.",
    ),
    _PROJECTS.makes(
        "create",
        "Creates a project.",
        CreateProject,
        lambda call: call.services.projects.create(call.value.id, call.command, by=call.by),
        description="Who may create projects and no more becomes its PROJECT_OWNER.",
        permission="project.create",
    ),
    _PROJECTS.shows("Shows a project."),
    _PROJECTS.changes("Changes a project's name and settings.", ChangeProject),
    _PROJECTS.deactivates("Deactivates a project: its applications stop working until it is reactivated."),
    _PROJECTS.reactivates("Reactivates a project."),
    _PROJECTS.removes("Deletes a project with its applications, roles and grants."),
)
