"""Organizations as described, with all that is in them."""

from collections.abc import Sequence
from functools import partial

from identity.domain.errors import NotFound
from identity.domain.organizations import Organization
from identity.domain.permissions import INSTANCE, organization_resource
from identity.services.commands.descriptions import DescribedOrganization
from identity.services.commands.organizations import ChangeOrganization, CreateOrganization
from identity.services.described.branding import ensure_branding
from identity.services.described.build import Build, Kind, asked
from identity.services.described.managers import ensure_managers
from identity.services.described.policies import ensure_policy
from identity.services.described.present import named, organizations_named
from identity.services.described.project_grants import ensure_project_grants
from identity.services.described.projects import ensure_projects
from identity.services.described.upstream_providers import ensure_upstream_providers
from identity.services.described.user_grants import ensure_user_grants
from identity.services.described.users import ensure_service_users, ensure_users
from identity.storage.paging import every_row


def ensure_organizations(build: Build, described: Sequence[tuple[str, DescribedOrganization]]) -> list[Organization]:
    """Those that were found or made. First what stands by itself, then what speaks of it: grants, then managers."""
    found: list[tuple[str, DescribedOrganization, Organization]] = []
    for path, one in described:
        organization = ensure_organization(build, path, one)
        if organization is not None:
            found.append((path, one, organization))
            ensure_branding(build, path, organization.primary_domain, organization, one.branding)
            ensure_policy(build, path, one.policy, organization.id, organization.primary_domain)
            ensure_users(build, path, organization, one.users)
            ensure_service_users(build, path, organization, one.service_users)
            ensure_upstream_providers(build, path, organization, one.upstream_providers)
    projects = [project for path, one, owner in found for project in ensure_projects(build, path, owner, one.projects)]
    grants = [grant for project in projects for grant in ensure_project_grants(build, project)]
    for project in projects:
        ensure_user_grants(build, project)
    for grant in grants:
        ensure_user_grants(build, grant)
    for path, one, owner in found:
        ensure_managers(build, path, one.managers, organization_resource(owner.id), owner, owner.primary_domain)
    for place in (*projects, *grants):
        ensure_managers(build, place.path, place.described.managers, place.resource, place.users_of, place.name)
    return [organization for _, _, organization in found]


def ensure_organization(build: Build, path: str, described: DescribedOrganization) -> Organization | None:
    """The organization alone."""
    organizations = build.services.organizations

    def make() -> Organization:
        build.services.access.require(build.by, "organization.create", INSTANCE)
        return organizations.create(asked(described, CreateOrganization), by=build.by, id=build.id_for(described))

    kind: Kind[Organization] = Kind(organizations, ChangeOrganization)
    name = described.primary_domain or described.name
    return build.ensure(path, name, described, kind, find=partial(_find, build, described), make=make)


def prune_organizations(build: Build, path: str) -> None:
    """Remove, at the end, organizations that the document does not speak of; the instance's own one stays."""
    own = build.own_organization_id
    kind: Kind[Organization] = Kind(build.services.organizations, ChangeOrganization)
    build.prune_things(
        path,
        kind,
        lambda: (one for one in every_row(build.storage.organizations.page) if one.id != own),
        lambda one: f"{one.primary_domain} ({one.name})",
    )


def _find(build: Build, described: DescribedOrganization) -> Organization | None:
    """By id, else by primary domain, else by name. Raises NotFound for an id, Invalid for a name of several."""
    stored = build.storage.organizations
    if described.id is not None:
        found = stored.find(described.id)
        if found is None:
            raise NotFound("organization", described.id)
        return found
    if described.primary_domain is not None:
        return stored.find_by_domain(described.primary_domain)
    return named(described.name, organizations_named(build.storage, described.name))
