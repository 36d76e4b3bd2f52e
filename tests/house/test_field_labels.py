"""Every mutable field has a label in the console, or is deliberately left out of its forms."""

from collections.abc import Mapping
from dataclasses import is_dataclass
from importlib import import_module
from pkgutil import iter_modules

import pytest

from identity import domain
from identity.domain.applications import Application
from identity.domain.attribute_mappings import AttributeMapping
from identity.domain.attributes import AttributeDefinition
from identity.domain.branding import Branding
from identity.domain.entity import entity_fields
from identity.domain.federated_credentials import FederatedCredential
from identity.domain.group_mappings import GroupMapping
from identity.domain.groups import Group, GroupGrant, GroupManager, GroupMember
from identity.domain.mail_server import MailServer
from identity.domain.managers import Manager
from identity.domain.messages import Message
from identity.domain.organizations import Organization
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.policies import Policy
from identity.domain.projects import Project, ProjectGrant, ProjectRole, UserGrant
from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.users import Address, Agent, HumanUser, Profile, ServiceUser
from identity.domain.webhooks import Webhook
from identity.plugins.console.field_labels import FieldLabel
from identity.plugins.console.fields.applications import APPLICATION_FIELDS
from identity.plugins.console.fields.attribute_mappings import ATTRIBUTE_MAPPING_FIELDS
from identity.plugins.console.fields.attributes import ATTRIBUTE_FIELDS
from identity.plugins.console.fields.branding import BRANDING_FIELDS
from identity.plugins.console.fields.federated_credentials import FEDERATED_CREDENTIAL_FIELDS
from identity.plugins.console.fields.group_mappings import GROUP_MAPPING_FIELDS
from identity.plugins.console.fields.groups import GROUP_FIELDS
from identity.plugins.console.fields.mail_server import MAIL_SERVER_FIELDS
from identity.plugins.console.fields.organizations import ORGANIZATION_FIELDS
from identity.plugins.console.fields.personal_access_tokens import PERSONAL_ACCESS_TOKEN_FIELDS
from identity.plugins.console.fields.policies import POLICY_FIELDS
from identity.plugins.console.fields.project_roles import PROJECT_ROLE_FIELDS
from identity.plugins.console.fields.projects import PROJECT_FIELDS
from identity.plugins.console.fields.service_users import AGENT_FIELDS, SERVICE_USER_FIELDS
from identity.plugins.console.fields.upstream_providers import UPSTREAM_PROVIDER_FIELDS
from identity.plugins.console.fields.users import HUMAN_USER_FIELDS, PROFILE_FIELDS
from identity.plugins.console.fields.webhooks import WEBHOOK_FIELDS

LABELS: Mapping[type, Mapping[str, FieldLabel]] = {
    Application: APPLICATION_FIELDS,
    Branding: BRANDING_FIELDS,
    HumanUser: HUMAN_USER_FIELDS,
    MailServer: MAIL_SERVER_FIELDS,
    Organization: ORGANIZATION_FIELDS,
    FederatedCredential: FEDERATED_CREDENTIAL_FIELDS,
    PersonalAccessToken: PERSONAL_ACCESS_TOKEN_FIELDS,
    Policy: POLICY_FIELDS,
    Profile: PROFILE_FIELDS,
    Project: PROJECT_FIELDS,
    ProjectRole: PROJECT_ROLE_FIELDS,
    Agent: AGENT_FIELDS,
    ServiceUser: SERVICE_USER_FIELDS,
    AttributeDefinition: ATTRIBUTE_FIELDS,
    UpstreamProvider: UPSTREAM_PROVIDER_FIELDS,
    AttributeMapping: ATTRIBUTE_MAPPING_FIELDS,
    Group: GROUP_FIELDS,
    GroupMapping: GROUP_MAPPING_FIELDS,
    Webhook: WEBHOOK_FIELDS,
}
#: Fields that forms leave out, because other pages change them or the console does not.
WITHOUT_INPUT: Mapping[type, set[str]] = {
    Application: {"type"},
    Profile: {"middle_name", "profile", "picture", "website", "gender", "birthdate", "address"},
}
#: Roles have pages of their own, and an address is part of a profile.
WITHOUT_FORM = {Address, GroupGrant, GroupManager, GroupMember, Manager, ProjectGrant, UserGrant}


def _entities_with_settable_fields() -> set[type]:
    modules = [import_module(f"{domain.__name__}.{module.name}") for module in iter_modules(domain.__path__)]
    return {
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type)
        and is_dataclass(kind)
        and any(field.is_settable for field in entity_fields(kind).values())
    }


def test_every_entity_with_settable_fields_has_labels() -> None:
    assert _entities_with_settable_fields() == LABELS.keys() | WITHOUT_FORM


@pytest.mark.parametrize("kind", LABELS, ids=lambda kind: kind.__name__)
def test_every_settable_field_has_a_label(kind: type) -> None:
    settable = {name for name, field in entity_fields(kind).items() if field.is_settable}
    labels = LABELS[kind]
    assert labels.keys() | WITHOUT_INPUT.get(kind, set()) == settable
    # A field without a label would show its name, in every language.
    assert {name for name, label in labels.items() if not isinstance(label.label, Message)} == set()
