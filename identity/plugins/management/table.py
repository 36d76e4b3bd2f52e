"""The table of the API: every resource with its operations."""

from identity.plugins.management.resources import (
    applications,
    audit_events,
    instance,
    managers,
    me,
    organization_domains,
    organizations,
    overview,
    project_grants,
    project_roles,
    projects,
    roles,
    service_user_keys,
    service_user_secrets,
    service_user_tokens,
    service_users,
    sessions,
    signing_keys,
    token_previews,
    transfer,
    user_grants,
    users,
)

#: Every resource, in the order of the document.
RESOURCES = (
    me,
    instance,
    signing_keys,
    organizations,
    organization_domains,
    transfer,
    overview,
    token_previews,
    users,
    sessions,
    service_users,
    service_user_keys,
    service_user_secrets,
    service_user_tokens,
    projects,
    project_roles,
    applications,
    project_grants,
    user_grants,
    managers,
    roles,
    audit_events,
)

OPERATIONS = tuple(operation for resource in RESOURCES for operation in resource.OPERATIONS)
