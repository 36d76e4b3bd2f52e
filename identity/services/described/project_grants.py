"""Project grants as described."""

from functools import partial

from identity.domain.projects import ProjectGrant
from identity.services.commands.descriptions import DescribedProject
from identity.services.commands.projects import AddProjectGrant, ChangeProjectGrant
from identity.services.described.build import Build, Kind
from identity.services.described.projects import Place
from identity.storage.paging import every_row


def ensure_project_grants(build: Build, place: Place) -> list[Place]:
    """The grants of a project, as far as they were found or made."""
    described = place.described.grants if isinstance(place.described, DescribedProject) else None
    if described is None:
        return []
    build.services.access.require(build.by, "project_grant.write", place.resource)
    grants, project = build.services.project_grants, place.project
    kind: Kind[ProjectGrant] = Kind(grants, ChangeProjectGrant)
    places = []
    for number, one in enumerate(described):
        path = f"{place.path}.grants[{number}]"
        holder = build.organization(path, one.organization)
        if holder is None:
            continue
        name = f"{place.name} → {holder.primary_domain}"
        find = partial(build.storage.project_grants.find_for, project.id, holder.id)
        make = partial(grants.add, project.id, AddProjectGrant(organization_id=holder.id, roles=one.roles), by=build.by)
        grant = build.ensure(path, name, one, kind, find=find, make=make)
        if grant is not None:
            places.append(Place(path, name, one, project, holder, grant))
    build.prune_things(
        f"{place.path}.grants",
        kind,
        lambda: every_row(partial(build.storage.project_grants.page, "project_id", project.id)),
        lambda grant: f"{place.name} → {_holder(build, grant)}",
    )
    return places


def _holder(build: Build, grant: ProjectGrant) -> str:
    found = build.storage.organizations.find(grant.organization_id)
    return grant.organization_id if found is None else found.primary_domain
