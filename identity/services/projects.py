"""Projects and their roles."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from identity.domain.applications import ApplicationClient
from identity.domain.domains import OrganizationDomain
from identity.domain.errors import Conflict, Invalid
from identity.domain.expirations import NEVER
from identity.domain.messages import gettext_lazy
from identity.domain.permissions import ManagerLevel, Resource, project_resource
from identity.domain.projects import (
    MAX_RESOURCE_URIS,
    URL_CLIENTS_PROJECT_ID,
    ClientRegistration,
    Project,
    ProjectRole,
)
from identity.domain.users import Agent, ServiceUser, Subject
from identity.services.access_control import AccessControl, Principal
from identity.services.agent_rules import list_effective_grants
from identity.services.audit import diff_fields, dump_fields
from identity.services.base import refuse_stale, translate_storage_errors
from identity.services.capabilities import Capabilities
from identity.services.commands.projects import AddProjectRole, ChangeProject, ChangeProjectRole, CreateProject
from identity.services.crud import DeactivatableEntityService
from identity.storage.backend import Storage
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage, single_page
from identity.storage.stores.projects import PROJECT_SORT_KEYS

#: Allowed clock skew between nodes: a grant must not appear later than the tokens issued under it.
_CLOCKS_APART = timedelta(seconds=30)
#: The labels of a host, from its end, that are looked for as domains of organizations.
_MOST_LABELS = 8


@dataclass(eq=False, repr=False)
class ProjectService(DeactivatableEntityService[Project]):
    """Projects of organizations. The applications of a deactivated project stop working. The service's own project
    stays."""

    kind = "project"
    store = "projects"

    _access: AccessControl
    _add_creator: Callable[[str, Resource], object]
    _choices: Capabilities

    def page(
        self, organization_id: str, request: PageRequest = FIRST_PAGE, *, principal: Principal
    ) -> ResultPage[Project]:
        """The organization's projects that ``principal`` may read, by name by default. A manager of single projects
        gets only these, on one page: there are never many."""
        parts = self._access.permitted_children(principal, "project.read", Resource.of_organization(organization_id))
        stored = self._storage.projects
        if parts is None:
            return self._access.filter_page(principal, stored.page(organization_id, request))
        managed_projects = stored.find_many([part.id for part in parts if part.level is ManagerLevel.PROJECT])
        return self._access.filter_page(principal, single_page(managed_projects.values(), request, PROJECT_SORT_KEYS))

    def create(
        self, organization_id: str, command: CreateProject, *, principal: Principal, id: str | None = None
    ) -> Project:
        """Create a project; ``id`` restores a former id. Raises NotFound, Invalid. A principal who may create projects
        there but not change them becomes its owner."""
        project = self._new_entity(Project, command, id=id, organization_id=organization_id)
        self._check_registration(project)
        self._refuse_taken_resources(project)
        self._add("project.created", project, organization_id, parent=("organization", organization_id))
        permissions = self._access.list_permissions(principal, Resource.of_organization(organization_id))
        if principal.id is not None and "project.create" in permissions and "project.write" not in permissions:
            self._add_creator(principal.id, project_resource(project))
        return project

    def change(
        self, project_id: str, command: ChangeProject, *, principal: Principal, expected_version: int | None = None
    ) -> Project:
        """Raises NotFound, Conflict, Invalid."""
        before = self._get_authorized(project_id, principal)
        after = self._next_version(before, command, expected_version=expected_version)
        self._check_registration(after, before)
        if after.resource_uris != before.resource_uris:
            self._refuse_taken_resources(after)
        return self._update("project.changed", before, after)

    def _check_registration(self, project: Project, before: Project | None = None) -> None:
        """Raise Invalid for the service's own project, which clients never get, and for new grant types
        that are unknown or without a person."""
        problems: dict[str, str] = {}
        if self.is_own_project(project.id):
            own_only = gettext_lazy("The instance's own project has only applications that managers create.")
            if project.open_to_dynamic_clients:
                problems["open_to_dynamic_clients"] = own_only
            if project.client_registration is not ClientRegistration.OFF:
                problems["client_registration"] = own_only
        offered = [name for name, grant in self._choices.grants_by_type.items() if not grant.accepts_service_users]
        stored = frozenset() if before is None else before.registration_grant_types
        unknown = project.registration_grant_types - stored - {*offered}
        if unknown:
            problems["registration_grant_types"] = gettext_lazy(
                "{name} is not offered here. Choose from {names}.",
                name=", ".join(sorted(unknown)),
                names=", ".join(offered),
            )
        if problems:
            raise Invalid(problems)

    def _refuse_taken_resources(self, project: Project) -> None:
        """Raise Invalid for a resource URI of another project of the organization, which would name neither."""
        if len(project.resource_uris) > MAX_RESOURCE_URIS:
            raise Invalid({"resource_uris": gettext_lazy("Enter at most {n} addresses.", n=MAX_RESOURCE_URIS)})
        for uri in project.resource_uris:
            found = self._storage.projects.list_by_resource_uri(uri)
            if any(item.organization_id == project.organization_id and item.id != project.id for item in found):
                raise Invalid({"resource_uris": gettext_lazy("{uri} belongs to another project already.", uri=uri)})

    def filter_audience(
        self,
        project_ids: frozenset[str],
        subject: Subject | None,
        client: ApplicationClient | None,
        *,
        issued_at: datetime | None = None,
    ) -> frozenset[str]:
        """The projects that a token of the subject for the client may have in its audience.

        For a token ``issued_at`` a moment, later grants do not count: a grant that was withdrawn and given again is
        a new one.

        Both user and client need the right: a project has to be active, and owned by or granted to the organization
        of each. The service's own project is for service users acting for themselves and for applications that may
        manage, which act with their users' manager roles.

        A dynamic client acts only for a user and belongs to no organization. Instead, the project has to be open to
        such clients, which the service's own never is.

        Of an agent a project must also be one in which it has a role that its owner has, too, and the service's own
        project needs its field ``may_manage``."""
        project_ids -= {URL_CLIENTS_PROJECT_ID}
        granted_by = NEVER if issued_at is None else issued_at + _CLOCKS_APART
        own_ids = frozenset(item for item in project_ids if self.is_own_project(item))
        found, user = project_ids - own_ids, None if subject is None else subject.user
        if isinstance(user, Agent):
            with self._look() as storage:
                grants = list_effective_grants(storage, user, found, self._now)
            found &= {grant.project_id for grant in grants}
        if client is not None and client.application.is_dynamic:
            if subject is None or not found:
                return frozenset()
            with self._look() as storage:
                stored = storage.projects.find_many(found)
                found = frozenset(id_ for id_, project in stored.items() if project.open_to_dynamic_clients)
                return storage.projects.list_audience(found, subject.organization.id, self._now, granted_by)
        organizations = {party.organization.id for party in (subject, client) if party is not None}
        for organization_id in organizations if found else ():
            with self._look() as storage:
                found &= storage.projects.list_audience(found, organization_id, self._now, granted_by)
        manages = isinstance(user, ServiceUser) if client is None else client.application.may_manage
        if isinstance(user, Agent) and not user.may_manage:
            manages = False
        return found | own_ids if manages else found

    def find_resource(self, uri: str, subject: Subject | None, client: ApplicationClient | None) -> Project | None:
        """The project that a resource indicator names, among those that a token of the subject for the client may have
        in its audience (``filter_audience``): that of the client's organization first, or of the subject's without a
        client or with a dynamic one. None if there is none, or if several are equally close.

        In a domain that an organization has verified, only its projects count: an API may look at the address in
        ``aud`` alone, and tokens of another organization's people must not fit."""
        with self._look() as storage:
            found = {project.id: project for project in storage.projects.list_by_resource_uri(uri)}
            domain = _find_verified_domain(uri, storage) if found else None
        if domain is not None:
            found = {id_: item for id_, item in found.items() if item.organization_id == domain.organization_id}
        allowed = self.filter_audience(frozenset(found), subject, client) if found else frozenset()
        party = subject if client is None or client.application.is_dynamic else client
        home = [found[id_] for id_ in allowed if party and found[id_].organization_id == party.organization.id]
        candidates = home or [found[id_] for id_ in allowed]
        return candidates[0] if len(candidates) == 1 else None

    def is_granted_to(self, project_id: str, organization_id: str) -> bool:
        """True if the project is granted to the organization and the grant is accepted and has not ended."""
        with self._look() as storage:
            grant = storage.project_grants.find_for_organization(project_id, organization_id)
        return grant is not None and grant.is_effective(self._now) and grant.accepted

    def is_own_project(self, project_id: str) -> bool:
        """True for the project that represents the service itself."""
        instance = self._instance()
        return instance is not None and instance.project_id == project_id

    def list_roles(self, project_id: str) -> tuple[ProjectRole, ...]:
        """The project's roles by key. Raises NotFound."""
        return self._storage.projects.list_roles(self.get(project_id).id)

    def add_role(self, project_id: str, command: AddProjectRole) -> ProjectRole:
        """Raises NotFound; Invalid if the key is taken."""
        project = self.get(project_id)
        role = ProjectRole(project_id=project_id, **dict(command))
        with translate_storage_errors(
            "project", project_id, {"key": gettext_lazy("The project has a role with this key. Choose another.")}
        ):
            self._storage.projects.add_role(role)
        self._record_role("project_role.added", role, project, dump_fields(role))
        return role

    def change_role(
        self, project_id: str, key: str, command: ChangeProjectRole, *, expected_version: int | None = None
    ) -> ProjectRole:
        """Raises NotFound, Conflict."""
        project = self.get(project_id)
        before = self._require_found(
            next((role for role in self.list_roles(project_id) if role.key == key), None), "role", key
        )
        refuse_stale(before.version, expected_version)
        values = {name: value for name, value in command.model_dump().items() if value is not None}
        after = replace(before, **values, version=before.version + 1)
        changes = diff_fields(before, after)
        if not changes:
            return before
        with translate_storage_errors("role", key):
            self._storage.projects.update_role(after)
        self._record_role("project_role.changed", after, project, changes)
        return after

    def remove_role(self, project_id: str, key: str) -> None:
        """Delete the role; users and grants lose it. Raises NotFound."""
        project = self.get(project_id)
        with translate_storage_errors("role", key):
            self._storage.projects.delete_role(project_id, key)
        role = ProjectRole(project_id=project_id, key=key, display_name=key)
        self._record_role("project_role.removed", role, project, {})

    def _record_role(self, event: str, role: ProjectRole, project: Project, detail: Mapping[str, object]) -> None:
        self._audit.record(
            event,
            kind="project",
            id=project.id,
            organization_id=project.organization_id,
            detail={"key": role.key, **detail},
        )

    def _refuse_deactivation(self, project: Project) -> None:
        if self.is_own_project(project.id):
            raise Conflict(gettext_lazy("The instance's project represents the service itself; it must stay active."))


def _find_verified_domain(uri: str, storage: Storage) -> OrganizationDomain | None:
    """The closest domain around the host of an address that an organization has verified."""
    labels = (urlsplit(uri).hostname or "").split(".")[-_MOST_LABELS:]
    names = (".".join(labels[index:]) for index in range(len(labels) - 1))
    domains = map(storage.organizations.find_effective_domain, names)
    return next((domain for domain in domains if domain is not None and domain.is_verified), None)
