"""Projects in the desired state, with their roles and applications."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from identity.domain.applications import Application
from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource, project_grant_resource, project_resource
from identity.domain.projects import URL_CLIENTS_PROJECT_ID, Project, ProjectGrant, ProjectRole
from identity.services.commands.applications import ChangeApplication, RegisterApplication
from identity.services.commands.desired_state import ApplicationSpec, ProjectGrantSpec, ProjectSpec
from identity.services.commands.projects import AddProjectRole, ChangeProject, ChangeProjectRole, CreateProject
from identity.services.desired_state.branding import ensure_branding
from identity.services.desired_state.existing_rows import ExistingRows
from identity.services.desired_state.federated_credentials import ensure_federated_credentials
from identity.services.desired_state.reconciler import (
    ChangeAction,
    Reconciler,
    RegisteredCredentials,
    command_from_spec,
    describe_differences,
    diff_entities,
    diff_spec,
)
from identity.storage.paging import iterate_rows

_ROLE = "project role"


@dataclass(frozen=True, slots=True)
class RoleSource:
    """Scope of user grants: a project, or its grant to another organization. Users of ``users_organization`` get the
    roles."""

    path: str
    name: str
    spec: ProjectSpec | ProjectGrantSpec
    project: Project
    users_organization: Organization
    grant: ProjectGrant | None = None

    @property
    def resource(self) -> Resource:
        return (
            project_resource(self.project) if self.grant is None else project_grant_resource(self.grant, self.project)
        )


def ensure_projects(
    build: Reconciler, path: str, organization: Organization, described: tuple[ProjectSpec, ...] | None
) -> list[RoleSource]:
    """The organization's projects that could be found or created."""
    if described is None:
        return []
    build.require("project.create", organization)
    build.require("project.write", organization)
    projects = build.services.projects
    rows = partial(iterate_rows, partial(build.storage.projects.page, organization.id))
    present = ExistingRows[Project](projects.kind_label, [] if build.create_all else rows())
    role_sources = []
    for number, spec in enumerate(described):
        project_path, name = f"{path}.projects[{number}]", f"{organization.primary_domain} / {spec.name}"
        create = partial(
            projects.create, organization.id, command_from_spec(spec, CreateProject), principal=build.principal
        )
        make = partial(create, id=build.new_entity_id(spec))
        project = build.ensure(
            project_path, name, spec, projects, ChangeProject, find=partial(present.find, spec), create=make
        )
        if project is not None:
            role_source = RoleSource(project_path, name, spec, project, organization)
            role_sources.append(role_source)
            _ensure_roles(build, role_source, spec.roles)
            _ensure_applications(build, role_source, spec.applications)
    remaining_ids = {build.own_project_id, URL_CLIENTS_PROJECT_ID}
    build.prune_entities(
        f"{path}.projects",
        projects,
        lambda: (project for project in rows() if project.id not in remaining_ids),
        lambda project: f"{organization.primary_domain} / {project.name}",
    )
    return role_sources


def _ensure_roles(build: Reconciler, role_source: RoleSource, described: tuple[AddProjectRole, ...] | None) -> None:
    if described is None:
        return
    path, where, project = role_source.path, role_source.name, role_source.project
    build.require("project_role.write", role_source.users_organization)
    projects = build.services.projects
    present = {role.key: role for role in projects.list_roles(project.id)}
    for number, add_project_role in enumerate(described):
        role_path = f"{path}.roles[{number}]"
        if not build.mark_seen(role_path, _ROLE, project.id, add_project_role.key):
            continue
        with build.collect_problems(role_path):
            _ensure_role(
                build, f"{where} / {add_project_role.key}", project, add_project_role, present.get(add_project_role.key)
            )
    build.prune_rows(
        f"{path}.roles",
        _ROLE,
        lambda: projects.list_roles(project.id),
        key=lambda role: (project.id, role.key),
        name=lambda role: f"{where} / {role.key}",
        remove=lambda role: projects.remove_role(project.id, role.key),
        effects=lambda role: build.services.storage.deletion_impact.count_role_grants(project.id, role.key),
    )


def _ensure_role(
    build: Reconciler, name: str, project: Project, described: AddProjectRole, role: ProjectRole | None
) -> None:
    projects = build.services.projects
    if role is None:
        projects.add_role(project.id, described)
        build.record_change(ChangeAction.ADD, _ROLE, name)
        return
    differing = diff_spec(described, role, ChangeProjectRole)
    if differing:
        after = projects.change_role(project.id, role.key, ChangeProjectRole(**differing))
        changed = diff_entities(role, after, ChangeProjectRole)
        if changed:
            build.record_change(ChangeAction.CHANGE, _ROLE, name, describe_differences(role, changed))


def _ensure_applications(
    build: Reconciler, role_source: RoleSource, described: tuple[ApplicationSpec, ...] | None
) -> None:
    if described is None:
        return
    path, where, project = role_source.path, role_source.name, role_source.project
    build.require("application.write", role_source.users_organization)
    applications = build.services.applications
    # No manager created dynamic clients, and they choose their names: a document neither finds nor removes them.
    stored = partial(iterate_rows, partial(build.storage.applications.page, project.id))
    rows = partial(_without_dynamic_clients, stored)
    present = ExistingRows[Application](applications.kind_label, [] if build.create_all else rows())
    for number, spec in enumerate(described):
        application_path, name = f"{path}.applications[{number}]", f"{where} / {spec.name}"
        command = command_from_spec(spec, RegisterApplication)
        add = partial(applications.register, project.id, command, principal=build.principal)
        application = build.ensure(
            application_path,
            name,
            spec,
            applications,
            ChangeApplication,
            find=partial(_find_application, present, spec),
            create=partial(add, id=build.new_entity_id(spec)),
        )
        if application is not None:
            ensure_branding(build, application_path, name, application, spec.branding)
            ensure_federated_credentials(build, application_path, name, application.id, spec.federated_credentials)
            secret = _first_secret(build, name, application)
            build.applications.append(RegisteredCredentials(name, application.id, secret))
    build.prune_entities(
        f"{path}.applications", applications, rows, lambda application: f"{where} / {application.name}"
    )


def _without_dynamic_clients(stored: Callable[[], Iterable[Application]]) -> Iterator[Application]:
    return (application for application in stored() if not application.is_dynamic)


def _first_secret(build: Reconciler, name: str, application: Application) -> str | None:
    applications = build.services.applications
    if not build.with_secrets or not application.uses_client_secret or applications.list_secrets(application.id):
        return None
    build.record_change(ChangeAction.ADD, "client secret", name)
    _, text = applications.add_secret(application.id, principal=build.principal)
    return text


def _find_application(present: ExistingRows[Application], described: ApplicationSpec) -> Application | None:
    """By id, else by name. Raises NotFound; Invalid for an ambiguous name, and for an application of another type."""
    application = present.find(described)
    if application is not None and application.type is not described.type:
        raise Invalid(
            {
                "type": gettext_lazy(
                    "The type of an application cannot be changed. This one is {type}.", type=application.type
                )
            }
        )
    return application
