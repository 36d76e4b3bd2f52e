"""Organizations in the desired state, with everything in them."""

from collections.abc import Sequence
from functools import partial

from identity.domain.errors import NotFound
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.services.commands.desired_state import OrganizationSpec
from identity.services.commands.organizations import ChangeOrganization, CreateOrganization
from identity.services.desired_state.attributes import ensure_attributes
from identity.services.desired_state.branding import ensure_branding
from identity.services.desired_state.directories import ensure_directories, ensure_mappings
from identity.services.desired_state.existing_rows import find_organizations_by_name, require_unambiguous
from identity.services.desired_state.groups import ensure_groups
from identity.services.desired_state.mail_texts import ensure_mail_texts
from identity.services.desired_state.managers import ensure_managers
from identity.services.desired_state.policies import ensure_policy
from identity.services.desired_state.project_grants import ensure_project_grants
from identity.services.desired_state.projects import ensure_projects
from identity.services.desired_state.reconciler import Reconciler, command_from_spec
from identity.services.desired_state.upstream_providers import DescribedProvider, ensure_upstream_providers
from identity.services.desired_state.user_grants import ensure_user_grants
from identity.services.desired_state.users import ensure_service_users, ensure_users
from identity.services.desired_state.webhooks import ensure_webhooks
from identity.storage.paging import iterate_rows


def ensure_organizations(build: Reconciler, described: Sequence[tuple[str, OrganizationSpec]]) -> list[Organization]:
    """Find or create the organizations: first independent entities, then references to them: grants, then managers."""
    found: list[tuple[str, OrganizationSpec, Organization]] = []
    providers: list[tuple[Organization, DescribedProvider]] = []
    for path, spec in described:
        organization = ensure_organization(build, path, spec)
        if organization is not None:
            found.append((path, spec, organization))
            ensure_branding(build, path, organization.primary_domain, organization, spec.branding)
            ensure_mail_texts(build, path, organization.primary_domain, organization, spec.mail_texts)
            ensure_policy(build, path, spec.policy, organization.id, organization.primary_domain)
            ensure_attributes(build, path, organization, spec.attributes)
            ensure_users(build, path, organization, spec.users)
            ensure_service_users(build, path, organization, spec.service_users)
            described_providers = ensure_upstream_providers(build, path, organization, spec.upstream_providers)
            providers.extend((organization, provider) for provider in described_providers)
            ensure_webhooks(build, path, organization, spec.webhooks)
    projects = [
        project for path, spec, owner in found for project in ensure_projects(build, path, owner, spec.projects)
    ]
    grants = [grant for project in projects for grant in ensure_project_grants(build, project)]
    for project in projects:
        ensure_user_grants(build, project)
    for grant in grants:
        ensure_user_grants(build, grant)
    for path, spec, owner in found:
        ensure_groups(build, path, owner, spec.groups)
        ensure_managers(build, path, spec.managers, Resource.of_organization(owner.id), owner, owner.primary_domain)
    for owner, (path, provider_spec, provider) in providers:
        ensure_mappings(build, path, owner, provider_spec, provider)
    for path, spec, owner in found:
        ensure_directories(build, path, owner, spec.directories)
    for item in (*projects, *grants):
        ensure_managers(build, item.path, item.spec.managers, item.resource, item.users_organization, item.name)
    return [organization for _, _, organization in found]


def ensure_organization(build: Reconciler, path: str, described: OrganizationSpec) -> Organization | None:
    """The organization without its contents."""
    organizations = build.services.organizations

    def make() -> Organization:
        build.services.access_control.require(build.principal, "organization.create", Resource.INSTANCE)
        command = command_from_spec(described, CreateOrganization)
        return organizations.create(command, principal=build.principal, id=build.new_entity_id(described))

    name = described.primary_domain or described.name
    return build.ensure(
        path, name, described, organizations, ChangeOrganization, find=partial(_find, build, described), create=make
    )


def prune_organizations(build: Reconciler, path: str) -> None:
    """Remove, at the end, organizations that the document does not mention; the instance's own one stays."""
    own_id = build.own_organization_id
    build.prune_entities(
        path,
        build.services.organizations,
        lambda: (
            organization for organization in iterate_rows(build.storage.organizations.page) if organization.id != own_id
        ),
        lambda organization: f"{organization.primary_domain} ({organization.name})",
    )


def _find(build: Reconciler, described: OrganizationSpec) -> Organization | None:
    """By id, else by primary domain, else by name. Raises NotFound for an id, Invalid for an ambiguous name."""
    stored = build.storage.organizations
    if described.id is not None:
        organization = stored.find(described.id)
        if organization is None:
            raise NotFound("organization", described.id)
        return organization
    if described.primary_domain is not None:
        return stored.find_by_domain(described.primary_domain)
    return require_unambiguous(described.name, find_organizations_by_name(build.storage, described.name))
