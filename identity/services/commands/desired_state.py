"""Documents that describe an instance or an organization, built from the members of the commands that create each
entity.

A member that is left out stays as it is, or gets the command's default. A list that is left out is not touched. None
means "left out" everywhere except for lifetimes, which then inherit from the instance, and policy rules, which then
inherit from the level above.
"""

import re
from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from identity.crypto.secrets import is_id
from identity.domain.messages import gettext_lazy
from identity.services.commands import Command
from identity.services.commands.applications import RegisterApplication
from identity.services.commands.attributes import CreateAttribute
from identity.services.commands.branding import ChangeBranding
from identity.services.commands.documents import Document
from identity.services.commands.field_types import ClaimPath, ClaimValue, Domain, Name, RoleKey, Timestamp, UserName
from identity.services.commands.groups import AddGroup
from identity.services.commands.mail_server import ChangeMailServer
from identity.services.commands.mail_texts import ChangeMailTexts
from identity.services.commands.managers import ManagerRoleNames
from identity.services.commands.policies import ChangePolicy
from identity.services.commands.projects import AddProjectRole, CreateProject
from identity.services.commands.service_users import (
    AddFederatedCredential,
    AddServiceUserKey,
    CreateServiceUser,
    UploadServiceUserKey,
)
from identity.services.commands.upstream_providers import CreateUpstreamProvider
from identity.services.commands.users import ChangeHumanUser
from identity.services.commands.webhooks import CreateWebhook, WebhookSecretText

_CLIENT_ID = re.compile(r"[0-9a-f]{32}")


def _id(text: str) -> str:
    if not is_id(text):
        raise ValueError(gettext_lazy("Enter an id such as 01903f8e-7b2a-7c3d-8e4f-5a6b7c8d9e0f."))
    return text


def _client_id(text: str) -> str:
    if not _CLIENT_ID.fullmatch(text):
        raise ValueError(gettext_lazy("Enter a client id: 32 digits and letters from a to f."))
    return text


EntityId = Annotated[str, AfterValidator(_id)]
ClientId = Annotated[str, AfterValidator(_client_id)]
#: A user by user name, if the organization is clear, by login name, or by id.
UserReference = Annotated[str, Field(min_length=1, max_length=500)]
#: A project by id or name.
ProjectReference = Annotated[str, Field(min_length=1, max_length=500)]
#: A group by id or name.
GroupReference = Annotated[str, Field(min_length=1, max_length=500)]
#: An attribute by id or key.
AttributeReference = Annotated[str, Field(min_length=1, max_length=500)]
#: An organization by primary domain, name or id.
OrganizationReference = Annotated[str, Field(min_length=1, max_length=500)]


class TimeLimitedSpec(Command):
    """What may end by itself. After its end, an entry counts as left out."""

    until: Timestamp | None = None

    def has_ended(self, now: datetime) -> bool:
        return self.until is not None and self.until <= now


class ManagerSpec(TimeLimitedSpec):
    """A user and all of their manager roles at the resource that lists them."""

    user: UserReference
    roles: ManagerRoleNames


class UserGrantSpec(TimeLimitedSpec):
    """A user and all of their roles in a project."""

    user: UserReference
    roles: frozenset[RoleKey] = frozenset()
    active: bool = True


class ProjectGrantSpec(TimeLimitedSpec):
    """A project granted to another organization. ``user_grants`` are those that derive from it; names without a domain
    are names in that organization."""

    organization: OrganizationReference
    roles: frozenset[RoleKey] = frozenset()
    active: bool = True
    user_grants: tuple[UserGrantSpec, ...] | None = None
    managers: tuple[ManagerSpec, ...] | None = None


class FederatedCredentialSpec(AddFederatedCredential):
    """A federated credential, matched by id, else by its content."""

    id: EntityId | None = None


class ApplicationSpec(RegisterApplication):
    """An application; documents never contain its secrets."""

    id: ClientId | None = None
    active: bool = True
    branding: ChangeBranding | None = None
    federated_credentials: tuple[FederatedCredentialSpec, ...] | None = None


class ProjectSpec(CreateProject):
    """A project with its parts. ``user_grants`` are those of the organization's own users."""

    id: EntityId | None = None
    active: bool = True
    roles: tuple[AddProjectRole, ...] | None = None
    applications: tuple[ApplicationSpec, ...] | None = None
    grants: tuple[ProjectGrantSpec, ...] | None = None
    user_grants: tuple[UserGrantSpec, ...] | None = None
    managers: tuple[ManagerSpec, ...] | None = None


class UserSpec(ChangeHumanUser):
    """A human user; documents never contain passwords."""

    id: EntityId | None = None
    active: bool = True
    user_name: UserName
    given_name: Name
    family_name: Name


class ServiceUserKeySpec(UploadServiceUserKey):
    """The public half of a service user's key."""

    id: EntityId | None = None


class ServiceUserSpec(CreateServiceUser):
    """A service user. With ``generated_key`` it gets a key whenever it has no live one besides those of ``keys``. With
    ``owner``, a person of the organization, it is an agent: it is created stopped and without keys, and its owner
    confirms it in the account."""

    id: EntityId | None = None
    owner: UserReference | None = None
    may_manage: bool | None = None
    active: bool = True
    keys: tuple[ServiceUserKeySpec, ...] | None = None
    generated_key: AddServiceUserKey | None = None
    federated_credentials: tuple[FederatedCredentialSpec, ...] | None = None


class AttributeSpec(CreateAttribute):
    """An attribute of the organization's people, matched by id, else by key."""

    id: EntityId | None = None


class GroupMappingSpec(Command):
    """A value in a claim of an identity provider that makes people members of a group of the organization. What the
    operator applies acts only after a user has saved it."""

    claim: ClaimPath
    value: ClaimValue
    group: GroupReference


class AttributeMappingSpec(Command):
    """A claim of an identity provider that is the value of an attribute, by its id or key. What the operator applies
    acts only after a user has saved it."""

    claim: ClaimPath
    attribute: AttributeReference


class MappingSourceSpec(Command):
    """The mappings of an identity provider or directory."""

    group_mappings: tuple[GroupMappingSpec, ...] | None = None
    attribute_mappings: tuple[AttributeMappingSpec, ...] | None = None


class UpstreamProviderSpec(MappingSourceSpec, CreateUpstreamProvider):
    """An identity provider; exports leave its secret out."""

    id: EntityId | None = None


class DirectorySpec(MappingSourceSpec):
    """A directory that the ini file sets up for the organization."""

    name: Name


class WebhookSpec(CreateWebhook):
    """A webhook; exports leave its signing secret out."""

    id: EntityId | None = None
    active: bool = True
    secret: WebhookSecretText | None = Field(default=None, repr=False)


class GroupMemberSpec(TimeLimitedSpec):
    """A user of the organization in a group."""

    user: UserReference


class GroupGrantSpec(TimeLimitedSpec):
    """Roles of a project of the organization, by its id or name, that the members of a group have."""

    project: ProjectReference
    roles: frozenset[RoleKey] = frozenset()


class GroupManagerSpec(TimeLimitedSpec):
    """Manager roles of the members of a group: at a project of the organization, else at the organization itself."""

    project: ProjectReference | None = None
    roles: ManagerRoleNames


class GroupSpec(AddGroup):
    """A group of the organization, matched by id, else by name."""

    id: EntityId | None = None
    active: bool = True
    members: tuple[GroupMemberSpec, ...] | None = None
    grants: tuple[GroupGrantSpec, ...] | None = None
    managers: tuple[GroupManagerSpec, ...] | None = None


class OrganizationSpec(Command):
    """An organization with its parts."""

    id: EntityId | None = None
    name: Name
    primary_domain: Domain | None = None
    registration: bool | None = None
    active: bool = True
    branding: ChangeBranding | None = None
    mail_texts: ChangeMailTexts | None = None
    policy: ChangePolicy | None = None
    attributes: tuple[AttributeSpec, ...] | None = None
    users: tuple[UserSpec, ...] | None = None
    service_users: tuple[ServiceUserSpec, ...] | None = None
    projects: tuple[ProjectSpec, ...] | None = None
    groups: tuple[GroupSpec, ...] | None = None
    upstream_providers: tuple[UpstreamProviderSpec, ...] | None = None
    directories: tuple[DirectorySpec, ...] | None = None
    webhooks: tuple[WebhookSpec, ...] | None = None
    managers: tuple[ManagerSpec, ...] | None = None


class OrganizationDocument(Document):
    """One exported organization. ``instance`` is the id of the own project of the instance that it comes from."""

    format: Literal["identity-organization"]
    version: Literal[1]
    instance: EntityId
    organization: OrganizationSpec


class InstanceSpec(Command):
    """Settings and managers of the instance itself."""

    policy: ChangePolicy | None = None
    mail_server: ChangeMailServer | None = None
    mail_texts: ChangeMailTexts | None = None
    webhooks: tuple[WebhookSpec, ...] | None = None
    managers: tuple[ManagerSpec, ...] | None = None


class DesiredState(Document):
    """The desired state of an instance."""

    version: Literal[1]
    instance: InstanceSpec | None = None
    organizations: tuple[OrganizationSpec, ...] | None = None
