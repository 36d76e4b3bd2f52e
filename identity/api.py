"""What plugins may import. The default plugins use nothing else; everything else can change without notice.

A package stands for all its modules. Names that begin with an underscore are private everywhere. Removing a public
name or changing its meaning raises ``identity.hookspecs.HOOKSPEC_VERSION``.
"""

from collections.abc import Mapping

#: The public modules, by topic.
PUBLIC_MODULES: Mapping[str, tuple[str, ...]] = {
    "plugins": (
        "identity.annotations",
        "identity.clock",
        "identity.concurrency",
        "identity.fair_semaphore",
        "identity.hookspecs",
        "identity.settings_parser",
        "identity.cached_property",
        "identity.log_formatters",
        "identity.extension_points",
        "identity.outbound_http",
        "identity.settings",
        "identity.instrumentation",
    ),
    "domain": ("identity.domain",),
    "protocol": (
        "identity.provider.step_up",
        "identity.provider.client_authentication",
        "identity.provider.consent",
        "identity.provider.directory",
        "identity.provider.context",
        "identity.provider.endpoints",
        "identity.provider.errors",
        "identity.provider.factor",
        "identity.provider.grant_type",
        "identity.provider.interaction",
        "identity.provider.known_browser_cookies",
        "identity.provider.single_use",
        "identity.provider.parameters",
        "identity.provider.token_preview",
        "identity.provider.claim_reasons",
        "identity.provider.protocol_request",
        "identity.provider.response_type",
        "identity.provider.role_claims",
        "identity.provider.scope",
        "identity.provider.sign_in_preview",
        "identity.provider.logout_handler",
        "identity.crypto.base64url",
        "identity.crypto.jwt",
        "identity.crypto.jwk_sets",
        "identity.crypto.rsa_keys",
        "identity.crypto.secrets",
    ),
    "use cases": (
        "identity.services.access_control",
        "identity.services.attempts",
        "identity.services.audit",
        "identity.services.container",
        "identity.services.commands",
        "identity.services.domains",
        "identity.services.statistics",
        "identity.services.factors",
        "identity.services.one_time_links",
        "identity.services.lookup",
        "identity.services.outbox",
        "identity.services.overview",
        "identity.services.personal_data_export",
        "identity.services.images",
        "identity.services.policies",
        "identity.services.records",
        "identity.services.registration",
        "identity.services.remembered_browsers",
        "identity.services.sign_ins",
        "identity.services.signing_keys",
        "identity.services.form_tokens",
        "identity.services.organization_transfer",
        "identity.services.upstream_providers",
        "identity.services.users",
        "identity.password_hashing",
    ),
    "requests": (
        "identity.http.cookies",
        "identity.http.large_documents",
        "identity.http.domain_verification",
        "identity.http.endpoint_routes",
        "identity.http.error_views",
        "identity.http.strict_json",
        "identity.http.json_stream",
        "identity.http.list_parameters",
        "identity.http.request_observers",
        "identity.http.language_negotiation",
        "identity.http.security_policy",
        "identity.http.sign_in_attempts",
        "identity.http.route_contexts",
        "identity.http.token_previews",
    ),
    "pages": ("identity.pages",),
    "console": (
        "identity.plugins.console.badges",
        "identity.plugins.console.action_page",
        "identity.plugins.console.form_page",
        "identity.plugins.console.console_page",
        "identity.plugins.console.form_fields",
        "identity.plugins.console.hookspecs",
        "identity.plugins.console.list_page",
        "identity.plugins.console.routes",
        "identity.plugins.console.page_sections",
        "identity.plugins.console.detail_page",
        "identity.plugins.console.resource_page",
        "identity.plugins.console.user_sections",
    ),
    "storage": ("identity.storage",),
    "testing": ("identity.testing",),
}


def is_public(name: str) -> bool:
    """True for ``identity`` itself and for modules, or names in modules, that plugins may import."""
    if any(part.startswith("_") for part in name.split(".")):
        return False
    modules = (module for family in PUBLIC_MODULES.values() for module in family)
    return name == "identity" or any(name == module or name.startswith(f"{module}.") for module in modules)
