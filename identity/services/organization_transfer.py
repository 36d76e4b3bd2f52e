"""Export of an organization to a JSON document, and import of such a document as a new organization.

The document holds what belongs to the organization: people without passwords, service users with the public halves of
their live keys, projects, roles, applications and identity providers without secrets, project grants to others, roles
of its users in its projects, groups with what they have here, managers of all these, and the policy it sets. It does
not hold what belongs to others: projects granted to the organization, roles that others gave its users, and proofs of
email addresses. Managers from organizations that the exporting user may not see are left out.

The document refers to its own users by their ids in the document, and to everything outside by names that survive:
organizations by primary domain, users by login name. It never contains passwords, client secrets, private keys or
personal access tokens.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from itertools import islice
from typing import Any, Self, TypeVar

from identity import password_hashing
from identity.crypto.signature_keys import PublicKey
from identity.domain.applications import Application
from identity.domain.attributes import AttributeDefinition
from identity.domain.errors import Denied
from identity.domain.expirations import TimeLimited
from identity.domain.groups import Group
from identity.domain.names import name_key
from identity.domain.organizations import Organization
from identity.domain.permissions import (
    INSTANCE_WRITE,
    ManagerLevel,
    Resource,
    ResourceKey,
    project_grant_resource,
    project_resource,
)
from identity.domain.policies import policy_to_json
from identity.domain.projects import URL_CLIENTS_PROJECT_ID, Project, ProjectGrant
from identity.domain.service_user_keys import ServiceUserKey
from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.users import Agent, ServiceUser, Subject
from identity.domain.webhooks import Webhook
from identity.services.access_control import Principal, VisibleEntityT
from identity.services.audit import dump_fields, to_json_value
from identity.services.branding import BrandingOwner
from identity.services.commands import Command
from identity.services.commands.applications import RegisterApplication
from identity.services.commands.attributes import CreateAttribute
from identity.services.commands.branding import ChangeBranding
from identity.services.commands.desired_state import OrganizationDocument, ServiceUserSpec, UserSpec
from identity.services.commands.documents import decode_document
from identity.services.commands.groups import AddGroup
from identity.services.commands.organizations import ChangeOrganization
from identity.services.commands.projects import AddProjectRole, CreateProject
from identity.services.commands.service_users import AddFederatedCredential, CreateAgent, CreateServiceUser
from identity.services.commands.streaming_import import StreamedList, TypeErrorFinder
from identity.services.commands.upstream_providers import CreateUpstreamProvider
from identity.services.commands.users import ChangeHumanUser
from identity.services.commands.webhooks import CreateWebhook
from identity.services.container import Services
from identity.services.desired_state.organizations import ensure_organizations
from identity.services.desired_state.reconciler import Reconciler, command_values
from identity.services.json_encoder import iterencode
from identity.services.mail_texts import mail_texts_to_json
from identity.services.provider_mappings import MappingSource
from identity.storage.paging import MAX_PAGE_ROWS, PageRequest, ResultPage, iterate_rows
from identity.storage.stores.users import UserKind

FORMAT = "identity-organization"
VERSION = 1

#: The most restricted permission the document needs: views require it, the service requires the others.
EXPORT_PERMISSION = "organization_manager.read"

#: An export needs all of these.
_READS = (
    "organization.read",
    "attribute.read",
    "user.read",
    "service_user.read",
    "group.read",
    "project.read",
    "project_role.read",
    "application.read",
    "upstream_provider.read",
    "webhook.read",
    "project_grant.read",
    "user_grant.read",
    EXPORT_PERMISSION,
    "project_manager.read",
    "project_grant_manager.read",
)


#: Lists of unbounded length, by their paths in the document.
STREAMED_LISTS: Mapping[tuple[str, ...], type[Command]] = {
    ("organization", "users"): UserSpec,
    ("organization", "service_users"): ServiceUserSpec,
}


class StreamedOrganizationImport(AbstractContextManager["StreamedOrganizationImport"]):
    """An incoming document, validated as it arrives. People and service users are spooled to files, the rest stays
    in memory. Receiving uses no storage, so a slow sender blocks no other request. It takes long, as the import
    itself does: run it in another thread."""

    def __init__(self, wrong_types: TypeErrorFinder = lambda _command, _values: {}) -> None:
        self._open = ExitStack()
        self._wrong_types = wrong_types
        self._lists = {path: StreamedList(".".join(path), kind, wrong_types) for path, kind in STREAMED_LISTS.items()}

    @property
    def list_consumers(self) -> Mapping[tuple[str, ...], Callable[[int, Any], None]]:
        """A consumer of (index, item) for each streamed list."""
        return {path: spooled.append for path, spooled in self._lists.items()}

    @property
    def user_count(self) -> int:
        return self._lists["organization", "users"].count

    def document(self, values: Mapping[str, Any]) -> OrganizationDocument:
        """Build the document from these remaining values, as far as it is valid; ``import_document`` reports all
        problems. Raises Invalid with a message for each invalid path if nothing is valid."""
        problems = self._wrong_types(OrganizationDocument, values)
        lists = {".".join(path): spooled for path, spooled in self._lists.items()}
        return decode_document(OrganizationDocument, values, problems, lists)

    def __enter__(self) -> Self:
        with self._open:
            for spooled in self._lists.values():
                self._open.callback(spooled.close)
            self._open.enter_context(password_hashing.acquire_document_slot())
            self._open = self._open.pop_all()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._open.close()


class OrganizationTransfer:
    def __init__(self, services: Services) -> None:
        self._services = services

    def can_export(self, organization_id: str, *, principal: Principal) -> bool:
        """True if the principal may read everything in the document."""
        resource = Resource.of_organization(organization_id)
        return all(self._services.access_control.is_permitted(principal, permission, resource) for permission in _READS)

    def begin_export(self, organization_id: str, *, principal: Principal) -> Organization:
        """Record the export in the audit trail. Commit, and then read ``export_document``. Raises NotFound; Denied if
        the principal may not read everything in it."""
        services = self._services
        organization = services.organizations.get(organization_id)
        resource = Resource.of_organization(organization_id)
        for permission in _READS:
            services.access_control.require(principal, permission, resource)
        services.audit.record(
            "organization.exported", kind="organization", id=organization_id, organization_id=organization_id
        )
        return organization

    def export_document(self, organization_id: str, *, principal: Principal) -> Iterator[str]:
        """The document piece by piece, as JSON in an order that depends only on its content. It is read lazily, users
        page by page; in a snapshot all of it is from one moment. Raises NotFound."""
        organization = self._services.organizations.get(organization_id)
        return iterencode(
            {
                "format": FORMAT,
                "version": VERSION,
                "instance": self._instance_id(),
                "organization": _Export(self._services, organization, principal).document(),
            }
        )

    def import_document(
        self,
        document: OrganizationDocument,
        *,
        principal: Principal,
        keep_ids: bool | None = None,
        progress: Callable[[int], None] = lambda _: None,
    ) -> Organization:
        """Create an organization from the document, with new ids or, with ``keep_ids``, those of the document.

        By default ids are kept if the document comes from this instance, as after an accidental removal; pass False
        to copy an organization. Applications have no secrets afterwards and people no passwords; expired keys are
        skipped.

        Raises Invalid with a message for each invalid path, such as ``organization.projects[0].name``: do not commit
        then. Raises Denied if the principal may not create all of it, would grant roles beyond their own, or wants
        to keep ids without instance.write."""
        keeps = document.instance == self._instance_id() if keep_ids is None else keep_ids
        # Existing tokens and audit events then refer to the imported users and applications.
        if keeps and not self._services.access_control.is_permitted(principal, INSTANCE_WRITE, Resource.INSTANCE):
            raise Denied("Only who manages the instance can keep ids. Import with new ids.", permission=INSTANCE_WRITE)
        build = Reconciler(
            self._services,
            document.parse_report,
            principal=principal,
            create_all=True,
            keep_ids=keeps,
            progress=progress,
        )
        organizations = ensure_organizations(build, [("organization", document.organization)])
        build.finish()
        organization = self._services.organizations.get(organizations[0].id)
        self._services.audit.record(
            "organization.imported",
            kind="organization",
            id=organization.id,
            organization_id=organization.id,
            detail={"instance": document.instance, "kept_ids": keeps},
        )
        return organization

    def _instance_id(self) -> str | None:
        instance = self._services.find_instance()
        return None if instance is None else instance.project_id


EndingT = TypeVar("EndingT", bound=TimeLimited)


class _Export:
    def __init__(self, services: Services, organization: Organization, principal: Principal) -> None:
        self._services = services
        self._storage = services.storage
        self._organization = organization
        self._principal = principal

    def document(self) -> dict[str, Any]:
        organization = self._organization
        found = self._visible(partial(self._storage.projects.page, organization.id))
        # Clients known by their URL belong to no organization.
        projects = sorted((item for item in found if item.id != URL_CLIENTS_PROJECT_ID), key=_by_name)
        return {
            **_members(organization, ChangeOrganization),
            **self._branding(organization),
            **self._mail_texts(organization),
            **self._policy(),
            "attributes": [_definition(item) for item in self._services.attributes.list_definitions(organization.id)],
            "users": self._people(),
            "service_users": (self._service_user(user) for user in self._users(UserKind.SERVICE)),
            "projects": (self._project(project) for project in projects),
            "groups": (self._group(group) for group in self._groups()),
            "upstream_providers": [self._provider(provider) for provider in sorted(self._providers(), key=_by_name)],
            **self._directories(),
            "webhooks": [_members(webhook, CreateWebhook) for webhook in sorted(self._webhooks(), key=_by_name)],
            "managers": self._managers(Resource.of_organization(organization.id).key),
        }

    def _groups(self) -> Iterator[Group]:
        return iterate_rows(partial(self._storage.groups.page, self._organization.id))

    def _group(self, group: Group) -> dict[str, Any]:
        """What others gave the group is theirs: roles through project grants are left out."""
        stored = self._storage
        # Mappings add their members again.
        by_hand = (
            member for member in iterate_rows(partial(stored.group_members.page, group.id)) if member.mapping_id is None
        )
        members = self._lasting(by_hand)
        grants = self._lasting(iterate_rows(partial(stored.group_grants.page, group.id)))
        managers = self._lasting(iterate_rows(partial(stored.group_managers.page, group.id)))

        def name(project_id: str) -> tuple[str, str]:
            project = stored.projects.find(project_id)
            return ("", "") if project is None else _by_name(project)

        return {
            **_members(group, AddGroup),
            "members": self._with_users(members, _end),
            "grants": [
                {"project": grant.project_id, "roles": sorted(grant.roles), **_end(grant)}
                for grant in sorted(grants, key=lambda grant: name(grant.project_id))
                if grant.project_grant_id is None
            ],
            "managers": [
                {
                    **({"project": manager.resource.id} if manager.resource.level is ManagerLevel.PROJECT else {}),
                    "roles": sorted(manager.roles),
                    **_end(manager),
                }
                for manager in sorted(managers, key=lambda manager: name(manager.resource.id))
                if manager.resource.level is not ManagerLevel.PROJECT_GRANT
            ],
        }

    def _policy(self) -> dict[str, Any]:
        """The policy that the organization itself sets; empty if it sets none."""
        policy = policy_to_json(self._services.policies.get_stored_policy(self._organization.id).policy)
        return {"policy": policy} if policy else {}

    def _visible(self, page: Callable[[PageRequest], ResultPage[VisibleEntityT]]) -> Iterable[VisibleEntityT]:
        """All rows except those a plugin hides from the principal."""
        return self._services.access_control.filter_visible(self._principal, iterate_rows(page))

    def _providers(self) -> Iterable[UpstreamProvider]:
        return iterate_rows(partial(self._storage.upstream_providers.page, self._organization.id))

    def _provider(self, provider: UpstreamProvider) -> dict[str, Any]:
        members = {
            name: value for name, value in dump_fields(provider).items() if name in CreateUpstreamProvider.model_fields
        }
        return {"id": provider.id, "active": provider.active, **members, **self._mappings(provider)}

    def _mappings(self, source: MappingSource) -> dict[str, list[Any]]:
        groups = [
            {"claim": mapping.claim, "value": mapping.value, "group": mapping.group_id}
            for mapping in self._services.group_mappings.list_of_source(source)
        ]
        attributes = [
            {"claim": mapping.claim, "attribute": mapping.attribute_id}
            for mapping in self._services.attribute_mappings.list_of_source(source)
        ]
        return {"group_mappings": groups, "attribute_mappings": attributes}

    def _directories(self) -> dict[str, Any]:
        """Those with mappings: without these an import needs no directory."""
        directories = self._services.directories.list_of_organization(self._organization)
        described = [(directory.name, self._mappings(directory)) for directory in directories]
        found = [{"name": name, **mappings} for name, mappings in described if any(mappings.values())]
        return {"directories": found} if found else {}

    def _webhooks(self) -> Iterable[Webhook]:
        return self._visible(partial(self._storage.webhooks.page, self._organization.id))

    def _users(self, kind: UserKind) -> Iterator[Any]:
        """Ordered by user name, which is unique."""
        return iterate_rows(partial(self._storage.users.page, self._organization.id, kind))

    def _people(self) -> Iterator[dict[str, Any]]:
        people = self._users(UserKind.HUMAN)
        while part := list(islice(people, MAX_PAGE_ROWS)):
            attributes = self._services.attributes.user_values(part)
            for user in part:
                yield _members(user, ChangeHumanUser, attributes=attributes[user.id] or None)

    def _service_user(self, user: ServiceUser) -> dict[str, Any]:
        if isinstance(user, Agent):
            # Its owner creates new keys, and confirms it.
            return {**_members(user, CreateAgent), "owner": user.owner_user_id}
        keys = iterate_rows(partial(self._storage.credentials.page, ServiceUserKey, user.id))
        live = sorted((key for key in keys if key.is_live(self._services.now)), key=lambda key: key.id)
        return {
            **_members(user, CreateServiceUser),
            "keys": [_key(key) for key in live],
            **self._federated_credentials(user.id),
        }

    def _application(self, application: Application) -> dict[str, Any]:
        return {
            **_members(application, RegisterApplication),
            **self._branding(application),
            **self._federated_credentials(application.id),
        }

    def _federated_credentials(self, owner_id: str) -> dict[str, Any]:
        stored = sorted(self._storage.credentials.list_federated_credentials(owner_id), key=_by_name)
        return {"federated_credentials": [{"id": item.id, **_values(item, AddFederatedCredential)} for item in stored]}

    def _project(self, project: Project) -> dict[str, Any]:
        applications = sorted(iterate_rows(partial(self._storage.applications.page, project.id)), key=_by_name)
        grants = map(
            partial(self._grant, project),
            self._lasting(self._visible(partial(self._storage.project_grants.page, "project_id", project.id))),
        )
        return {
            **_members(project, CreateProject),
            "roles": [_values(role, AddProjectRole) for role in self._storage.projects.list_roles(project.id)],
            "applications": [self._application(item) for item in applications if not item.is_dynamic],
            "grants": iter(sorted(grants, key=lambda grant: str(grant["organization"]))),
            "user_grants": self._user_grants(project),
            "managers": self._managers(project_resource(project).key),
        }

    def _branding(self, owner: BrandingOwner) -> dict[str, Any]:
        """Branding; empty if it was never set."""
        if not owner.branded:
            return {}
        branding = self._services.branding
        return {
            "branding": {**_values(branding.own_branding(owner), ChangeBranding), **branding.own_logos_base64(owner)}
        }

    def _mail_texts(self, organization: Organization) -> dict[str, Any]:
        """Own texts of mails; empty if there are none."""
        texts = mail_texts_to_json(self._services.mail_texts.get(organization))
        return {"mail_texts": {"texts": texts}} if texts else {}

    def _grant(self, project: Project, grant: ProjectGrant) -> dict[str, Any]:
        return {
            "organization": self._services.organizations.get(grant.organization_id).primary_domain,
            "roles": sorted(grant.roles),
            "active": grant.active,
            **_end(grant),
            "managers": self._managers(project_grant_resource(grant, project).key),
        }

    def _user_grants(self, project: Project) -> Iterator[dict[str, Any]]:
        grants = self._visible(partial(self._storage.user_grants.page, "project_id", project.id))
        user_grants = (grant for grant in grants if grant.project_grant_id is None)
        return self._with_users(
            self._lasting(user_grants),
            lambda grant: {"roles": sorted(grant.roles), "active": grant.active, **_end(grant)},
        )

    def _managers(self, resource: ResourceKey) -> Iterator[dict[str, Any]]:
        managers = self._visible(partial(self._storage.managers.page, resource))
        return self._with_users(
            self._lasting(managers), lambda manager: {"roles": sorted(manager.roles), **_end(manager)}
        )

    def _lasting(self, rows: Iterable[EndingT]) -> Iterator[EndingT]:
        """The rows that have not ended."""
        return (row for row in rows if not row.has_ended(self._services.now))

    def _with_users(self, rows: Iterable[Any], members: Callable[[Any], dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Rows that refer to users: the organization's own users by id first, then others by login name. Rows of users
        that the principal may not see are left out. Only user names are held in memory."""
        sees, rest, found = self._services.access_control.can_see_organization, iter(rows), []
        while part := list(islice(rest, MAX_PAGE_ROWS)):
            subjects = self._storage.users.find_subjects([row.user_id for row in part])
            for row in part:
                subject = subjects.get(row.user_id)
                if subject is not None and sees(self._principal, subject.organization.id):
                    found.append((self._name_sort_key(subject), self._reference(subject), row))
        found.sort(key=lambda item: item[0])
        return ({"user": reference, **members(row)} for _, reference, row in found)

    def _reference(self, subject: Subject) -> str:
        return subject.user.id if self._is_own(subject) else subject.login_name

    def _name_sort_key(self, subject: Subject) -> tuple[bool, str]:
        is_own = self._is_own(subject)
        return not is_own, name_key(subject.user.user_name if is_own else subject.login_name)

    def _is_own(self, subject: Subject) -> bool:
        return subject.organization.id == self._organization.id


def _end(row: TimeLimited) -> dict[str, Any]:
    return {} if row.until is None else {"until": to_json_value(row.until)}


def _members(entity: Any, command: type[Command], **known: Any) -> dict[str, Any]:
    """The entity's fields by the names of its create command, with its id and active state, and ``known`` others."""
    return {"id": entity.id, "active": entity.active, **_values(entity, command, **known)}


def _values(entity: Any, command: type[Command], **known: Any) -> dict[str, Any]:
    present = {**command_values(entity), **known}
    return {name: to_json_value(present[name]) for name in command.model_fields}


def _definition(definition: AttributeDefinition) -> dict[str, Any]:
    return {"id": definition.id, **_values(definition, CreateAttribute)}


def _key(key: ServiceUserKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "public_key": PublicKey.from_der(key.public_key, key.algorithm).to_pem(),
        "expires_at": to_json_value(key.expires_at),
        "algorithm": key.algorithm,
    }


def _by_name(entity: Any) -> tuple[str, str]:
    """Sort key: names need not be unique; among equal names the older comes first."""
    return name_key(entity.name), entity.id
