"""Console pages that belong to no single resource, and the registration of all pages."""

from importlib import import_module

from pyramid.config import Configurator

from identity.plugins.console.routes import add_console_routes

# Literal paths come before paths with ids: Pyramid takes the first route that matches.
_MODULES = tuple(
    import_module(f"identity.plugins.console.{name}")
    for name in (
        "pages.home",
        "pages.search",
        "resources.service_users",
        "resources.service_user_credentials",
        "resources.federated_credentials",
        "resources.managers",
        "pages.overview",
        "resources.audit_events",
        "resources.user_credentials",
        "resources.user_imports",
        "resources.users",
        "resources.attributes",
        "resources.sessions",
        "resources.organizations",
        "resources.organization_domains",
        "resources.branding",
        "pages.instance",
        "resources.policies",
        "pages.sign_in_preview",
        "resources.upstream_providers",
        "resources.directories",
        "resources.webhooks",
        "resources.projects",
        "resources.project_roles",
        "resources.applications",
        "resources.project_grants",
        "resources.user_grants",
        "resources.held_grants",
        "resources.groups",
        "resources.group_members",
        "resources.group_grants",
        "resources.group_managers",
        "resources.group_mappings",
        "resources.attribute_mappings",
        "pages.token_preview",
        "resources.signing_keys",
        "resources.mail_server",
        "resources.sent_mails",
        "resources.mail_texts",
        "resources.legal_holds",
        "pages.plugins",
    )
)


def add_console_pages(config: Configurator) -> None:
    for module in _MODULES:
        add_console_routes(config, module.ROUTES)
