"""All operations of the API; plugins add theirs with ``management_operations``."""

from collections.abc import Mapping
from types import ModuleType

from identity.plugins.management.operation import OperationGroup
from identity.plugins.management.resources import (
    application_log,
    applications,
    attribute_mappings,
    attributes,
    audit_events,
    branding,
    connected_applications,
    directories,
    effective_access,
    federated_credentials,
    figures,
    group_mappings,
    groups,
    instance,
    legal_holds,
    mail_server,
    mail_texts,
    manager_roles,
    managers,
    me,
    organization_domains,
    organization_transfer,
    organizations,
    overview,
    personal_access_tokens,
    plugins,
    policies,
    project_grants,
    project_roles,
    projects,
    search,
    sent_mails,
    service_user_keys,
    service_user_secrets,
    service_users,
    sessions,
    signing_keys,
    system_report,
    token_previews,
    upstream_providers,
    user_factors,
    user_grants,
    user_imports,
    users,
    webhooks,
)

#: In the order of the document.
RESOURCE_MODULES = (
    me,
    instance,
    signing_keys,
    mail_server,
    sent_mails,
    mail_texts,
    legal_holds,
    plugins,
    system_report,
    organizations,
    organization_domains,
    branding,
    policies,
    organization_transfer,
    overview,
    figures,
    search,
    token_previews,
    upstream_providers,
    group_mappings,
    attribute_mappings,
    directories,
    attributes,
    webhooks,
    users,
    user_imports,
    effective_access,
    user_factors,
    sessions,
    connected_applications,
    service_users,
    service_user_keys,
    service_user_secrets,
    federated_credentials,
    personal_access_tokens,
    projects,
    project_roles,
    applications,
    application_log,
    project_grants,
    user_grants,
    groups,
    managers,
    manager_roles,
    audit_events,
)

#: Published tags that differ from the module names. Generated clients depend on them.
_TAGS: Mapping[str, str] = {
    "connected_applications": "Connections",
    "manager_roles": "Roles",
    "organization_transfer": "Transfer",
    "personal_access_tokens": "Service user tokens",
}


def _group(module: ModuleType) -> OperationGroup:
    """The operations of a module, under its name ("Service users") and docstring without the leading name."""
    name = module.__name__.rpartition(".")[2]
    description = " ".join((module.__doc__ or "").split()).partition(": ")[2]
    return OperationGroup(
        _TAGS.get(name) or name.replace("_", " ").capitalize(),
        description[:1].upper() + description[1:],
        module.OPERATIONS,
    )


OPERATION_GROUPS = tuple(map(_group, RESOURCE_MODULES))
OPERATIONS = tuple(operation for group in OPERATION_GROUPS for operation in group.operations)
