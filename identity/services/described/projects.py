"""Projects as described, with their roles and applications."""

from dataclasses import dataclass
from functools import partial

from identity.domain.applications import Application
from identity.domain.errors import Invalid
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource, project_grant_resource, project_resource
from identity.domain.projects import Project, ProjectGrant, ProjectRole
from identity.domain.words import say
from identity.services.commands.applications import ChangeApplication, RegisterApplication
from identity.services.commands.descriptions import DescribedApplication, DescribedProject, DescribedProjectGrant
from identity.services.commands.projects import AddProjectRole, ChangeProject, ChangeProjectRole, CreateProject
from identity.services.described.branding import ensure_branding
from identity.services.described.build import (
    Action,
    Build,
    Kind,
    Registered,
    asked,
    changes,
    differences,
    told,
)
from identity.services.described.present import Present
from identity.storage.paging import every_row

_ROLE = "project role"


@dataclass(frozen=True, slots=True)
class Place:
    """Where roles are given: a project, or its grant to another organization. ``users_of`` is whose users get them."""

    path: str
    name: str
    described: DescribedProject | DescribedProjectGrant
    project: Project
    users_of: Organization
    grant: ProjectGrant | None = None

    @property
    def resource(self) -> Resource:
        """Where managers hold roles."""
        return (
            project_resource(self.project) if self.grant is None else project_grant_resource(self.grant, self.project)
        )


def ensure_projects(
    build: Build, path: str, organization: Organization, described: tuple[DescribedProject, ...] | None
) -> list[Place]:
    """The projects of an organization, as far as they were found or made."""
    if described is None:
        return []
    build.require("project.create", organization)
    build.require("project.write", organization)
    projects = build.services.projects
    kind: Kind[Project] = Kind(projects, ChangeProject)
    rows = partial(every_row, partial(build.storage.projects.page, organization.id))
    present = Present[Project](kind.name, [] if build.fresh else rows())
    places = []
    for number, one in enumerate(described):
        place, name = f"{path}.projects[{number}]", f"{organization.primary_domain} / {one.name}"
        create = partial(projects.create, organization.id, asked(one, CreateProject), by=build.by)
        make = partial(create, id=build.id_for(one))
        project = build.ensure(place, name, one, kind, find=partial(present.find, one), make=make)
        if project is not None:
            places.append(Place(place, name, one, project, organization))
            _ensure_roles(build, place, name, organization, project, one.roles)
            _ensure_applications(build, place, name, organization, project, one.applications)
    own = build.own_project_id
    build.prune_things(
        f"{path}.projects",
        kind,
        lambda: (one for one in rows() if one.id != own),
        lambda project: f"{organization.primary_domain} / {project.name}",
    )
    return places


def _ensure_roles(
    build: Build,
    path: str,
    where: str,
    organization: Organization,
    project: Project,
    described: tuple[AddProjectRole, ...] | None,
) -> None:
    if described is None:
        return
    build.require("project_role.write", organization)
    projects = build.services.projects
    present = {role.key: role for role in projects.roles(project.id)}
    for number, one in enumerate(described):
        place = f"{path}.roles[{number}]"
        if not build.is_new(place, _ROLE, project.id, one.key):
            continue
        with build.refusals_at(place):
            _ensure_role(build, f"{where} / {one.key}", project, one, present.get(one.key))
    build.prune(
        f"{path}.roles",
        _ROLE,
        lambda: projects.roles(project.id),
        key=lambda role: (_ROLE, project.id, role.key),
        name=lambda role: f"{where} / {role.key}",
        remove=lambda role: projects.remove_role(project.id, role.key),
        effects=lambda role: build.services.storage.effects.of_role(project.id, role.key),
    )


def _ensure_role(
    build: Build, name: str, project: Project, described: AddProjectRole, role: ProjectRole | None
) -> None:
    projects = build.services.projects
    if role is None:
        projects.add_role(project.id, described)
        build.note(Action.ADD, _ROLE, name)
        return
    differing = differences(described, role, ChangeProjectRole)
    if differing:
        after = projects.change_role(project.id, role.key, ChangeProjectRole(**differing))
        changed = changes(role, after, ChangeProjectRole)
        if changed:
            build.note(Action.CHANGE, _ROLE, name, told(role, changed))


def _ensure_applications(
    build: Build,
    path: str,
    where: str,
    organization: Organization,
    project: Project,
    described: tuple[DescribedApplication, ...] | None,
) -> None:
    if described is None:
        return
    build.require("application.write", organization)
    applications = build.services.applications
    kind: Kind[Application] = Kind(applications, ChangeApplication)
    rows = partial(every_row, partial(build.storage.applications.page, project.id))
    present = Present[Application](kind.name, [] if build.fresh else rows())
    for number, one in enumerate(described):
        place, name = f"{path}.applications[{number}]", f"{where} / {one.name}"
        command = asked(one, RegisterApplication)
        add = partial(applications.add, project.id, command, by=build.by, id=build.id_for(one))
        application = build.ensure(place, name, one, kind, find=partial(_find_application, present, one), make=add)
        if application is not None:
            ensure_branding(build, place, name, application, one.branding)
            build.applications.append(Registered(name, application.id, _first_secret(build, name, application)))
    build.prune_things(f"{path}.applications", kind, rows, lambda application: f"{where} / {application.name}")


def _first_secret(build: Build, name: str, application: Application) -> str | None:
    applications = build.services.applications
    if not build.with_secrets or application.public or applications.secrets(application.id):
        return None
    build.note(Action.ADD, "client secret", name)
    _, text = applications.add_secret(application.id, by=build.by)
    return text


def _find_application(present: Present[Application], described: DescribedApplication) -> Application | None:
    """By id, else by name. Raises NotFound; Invalid for a name of several, and for an application of another type."""
    found = present.find(described)
    if found is not None and found.type is not described.type:
        raise Invalid({"type": say("The type of an application does not change. This one is {type}.", type=found.type)})
    return found
