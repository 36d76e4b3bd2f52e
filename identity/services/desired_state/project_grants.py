"""Project grants in the desired state."""

from functools import partial

from identity.domain.projects import ProjectGrant
from identity.services.commands.desired_state import ProjectSpec
from identity.services.commands.projects import AddProjectGrant, ChangeProjectGrant
from identity.services.desired_state.projects import RoleSource
from identity.services.desired_state.reconciler import Reconciler
from identity.storage.paging import iterate_rows


def ensure_project_grants(build: Reconciler, role_source: RoleSource) -> list[RoleSource]:
    """The project's grants that could be found or created."""
    described = role_source.spec.grants if isinstance(role_source.spec, ProjectSpec) else None
    if described is None:
        return []
    build.services.access_control.require(build.principal, "project_grant.write", role_source.resource)
    grants, project = build.services.project_grants, role_source.project
    role_sources = []
    for number, spec in enumerate(described):
        if spec.has_ended(build.services.now):
            continue
        path = f"{role_source.path}.grants[{number}]"
        holder = build.resolve_organization(path, spec.organization)
        if holder is None:
            continue
        name = f"{role_source.name} → {holder.primary_domain}"
        find = partial(build.storage.project_grants.find_for_organization, project.id, holder.id)
        make = partial(
            grants.add,
            project.id,
            AddProjectGrant(organization_id=holder.id, roles=spec.roles, until=spec.until),
            principal=build.principal,
        )
        grant = build.ensure(path, name, spec, grants, ChangeProjectGrant, find=find, create=make)
        if grant is not None:
            role_sources.append(RoleSource(path, name, spec, project, holder, grant))
    build.prune_entities(
        f"{role_source.path}.grants",
        grants,
        lambda: iterate_rows(partial(build.storage.project_grants.page, "project_id", project.id)),
        lambda grant: f"{role_source.name} → {_holder(build, grant)}",
    )
    return role_sources


def _holder(build: Reconciler, grant: ProjectGrant) -> str:
    organization = build.storage.organizations.find(grant.organization_id)
    return grant.organization_id if organization is None else organization.primary_domain
