"""One file per kind of thing that the console shows."""

from importlib import import_module

from pyramid.config import Configurator

from identity.plugins.console.places import add_places

# Addresses with names before addresses with ids: the first route that fits is taken.
_MODULES = tuple(
    import_module(f"{__name__}.{name}")
    for name in (
        "home",
        "service_users",
        "service_user_keys",
        "service_user_secrets",
        "managers",
        "overview",
        "audit_events",
        "user_access",
        "user_factors",
        "users",
        "sessions",
        "connections",
        "transfer",
        "organizations",
        "organization_domains",
        "branding",
        "instance",
        "policies",
        "policy_preview",
        "upstream_providers",
        "projects",
        "project_roles",
        "application_form",
        "applications",
        "project_grants",
        "granted_projects",
        "user_grants",
        "held_grants",
        "token_preview",
        "signing_keys",
        "legal_holds",
    )
)


def configure(config: Configurator) -> None:
    """Every page of every file."""
    for module in _MODULES:
        add_places(config, module.PLACES)
