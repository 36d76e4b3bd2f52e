"""Paths of the API that name an entity."""

from identity.domain.applications import Application
from identity.domain.attribute_mappings import AttributeMapping
from identity.domain.attributes import AttributeDefinition
from identity.domain.audit import AuditEvent
from identity.domain.group_mappings import GroupMapping
from identity.domain.groups import Group, GroupGrant, GroupManager, GroupMember
from identity.domain.instance import Instance
from identity.domain.managers import Manager
from identity.domain.organizations import Organization
from identity.domain.projects import Project, ProjectGrant, UserGrant
from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.users import HumanUser, ServiceUser
from identity.domain.webhooks import Webhook
from identity.http import route_contexts
from identity.plugins.management.operation import EntityPath

#: Operations on the whole instance, whatever their path.
INSTANCE = EntityPath[Instance]("", route_contexts.instance_context)
CALLER = EntityPath[None]("/me", route_contexts.caller_context)
APPLICATION = EntityPath[Application]("/applications/{application}", route_contexts.application_context)
ATTRIBUTE = EntityPath[AttributeDefinition]("/attributes/{attribute}", route_contexts.attribute_context)
ATTRIBUTE_MAPPING = EntityPath[AttributeMapping](
    "/attribute-mappings/{attribute_mapping}", route_contexts.attribute_mapping_context
)
AUDIT_EVENT = EntityPath[AuditEvent]("/audit-events/{audit_event}", route_contexts.audit_event_context)
GROUP = EntityPath[Group]("/groups/{group}", route_contexts.group_context)
GROUP_GRANT = EntityPath[GroupGrant]("/group-grants/{group_grant}", route_contexts.group_grant_context)
GROUP_MANAGER = EntityPath[GroupManager]("/group-managers/{group_manager}", route_contexts.group_manager_context)
GROUP_MAPPING = EntityPath[GroupMapping]("/group-mappings/{group_mapping}", route_contexts.group_mapping_context)
GROUP_MEMBER = EntityPath[GroupMember]("/group-members/{group_member}", route_contexts.group_member_context)
MANAGER = EntityPath[Manager]("/managers/{manager}", route_contexts.manager_context)
ORGANIZATION = EntityPath[Organization]("/organizations/{organization}", route_contexts.organization_context)
#: The ini file sets them up: operations find them by name.
DIRECTORY = ORGANIZATION / "directories/{directory}"
#: A permission on a part of the organization is enough; the list shows only those parts.
ORGANIZATION_OR_CHILD = EntityPath[Organization](ORGANIZATION.template, route_contexts.organization_or_child_context)
PROJECT = EntityPath[Project]("/projects/{project}", route_contexts.project_context)
PROJECT_GRANT = EntityPath[ProjectGrant]("/project-grants/{project_grant}", route_contexts.project_grant_context)
SERVICE_USER = EntityPath[ServiceUser]("/service-users/{service_user}", route_contexts.service_user_context)
UPSTREAM_PROVIDER = EntityPath[UpstreamProvider](
    "/upstream-providers/{upstream_provider}", route_contexts.upstream_provider_context
)
USER = EntityPath[HumanUser]("/users/{user}", route_contexts.user_context)
WEBHOOK = EntityPath[Webhook]("/webhooks/{webhook}", route_contexts.webhook_context)
USER_GRANT = EntityPath[UserGrant]("/user-grants/{user_grant}", route_contexts.user_grant_context)
