"""Project grants as described."""

from functools import partial

from identity.domain.projects import ProjectGrant
from identity.services.commands.desired_state import ProjectSpec
from identity.services.commands.projects import AddProjectGrant, ChangeProjectGrant
from identity.services.desired_state.projects import RoleScope
from identity.services.desired_state.reconciler import EntityKind, Reconciler
from identity.storage.paging import iterate_rows


def ensure_project_grants(build: Reconciler, place: RoleScope) -> list[RoleScope]:
    """The grants of a project, as far as they were found or made."""
    described = place.spec.grants if isinstance(place.spec, ProjectSpec) else None
    if described is None:
        return []
    build.services.access_control.require(build.principal, "project_grant.write", place.resource)
    grants, project = build.services.project_grants, place.project
    kind: EntityKind[ProjectGrant] = EntityKind(grants, ChangeProjectGrant)
    places = []
    for number, one in enumerate(described):
        path = f"{place.path}.grants[{number}]"
        holder = build.resolve_organization(path, one.organization)
        if holder is None:
            continue
        name = f"{place.name} → {holder.primary_domain}"
        find = partial(build.storage.project_grants.find_for_organization, project.id, holder.id)
        make = partial(
            grants.add, project.id, AddProjectGrant(organization_id=holder.id, roles=one.roles), by=build.principal
        )
        grant = build.ensure(path, name, one, kind, find=find, create=make)
        if grant is not None:
            places.append(RoleScope(path, name, one, project, holder, grant))
    build.prune_entities(
        f"{place.path}.grants",
        kind,
        lambda: iterate_rows(partial(build.storage.project_grants.page, "project_id", project.id)),
        lambda grant: f"{place.name} → {_holder(build, grant)}",
    )
    return places


def _holder(build: Reconciler, grant: ProjectGrant) -> str:
    found = build.storage.organizations.find(grant.organization_id)
    return grant.organization_id if found is None else found.primary_domain
