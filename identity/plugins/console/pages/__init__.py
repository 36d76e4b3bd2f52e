"""One file per kind of thing that the console shows."""

from pyramid.config import Configurator

from identity.plugins.console.pages import (
    application_secrets,
    applications,
    audit_events,
    connections,
    granted_projects,
    home,
    instance,
    managers,
    organization_domains,
    organizations,
    overview,
    project_grants,
    project_roles,
    projects,
    service_user_keys,
    service_user_secrets,
    service_users,
    sessions,
    signing_keys,
    token_preview,
    transfer,
    user_access,
    user_grants,
    users,
)
from identity.plugins.console.places import add_places

_MODULES = (
    home,
    service_users,
    service_user_keys,
    service_user_secrets,
    managers,
    overview,
    audit_events,
    users,
    user_access,
    sessions,
    connections,
    transfer,
    organizations,
    organization_domains,
    instance,
    projects,
    project_roles,
    applications,
    application_secrets,
    project_grants,
    granted_projects,
    user_grants,
    token_preview,
    signing_keys,
)


def configure(config: Configurator) -> None:
    """Every page of every file."""
    for module in _MODULES:
        add_places(config, module.PLACES)
