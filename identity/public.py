"""What plugins may import. The default plugins live from it, too; everything else can change without notice.

A package stands for all modules in it. Names that begin with an underscore are private everywhere. Removing a name, or
changing what one means, raises ``identity.hookspecs.VERSION``.
"""

from collections.abc import Mapping

#: Each family with its modules.
MODULES: Mapping[str, tuple[str, ...]] = {
    "plugins": (
        "identity.annotations",
        "identity.clock",
        "identity.concurrency",
        "identity.fair_shares",
        "identity.hookspecs",
        "identity.ini_values",
        "identity.lazily",
        "identity.log_format",
        "identity.operations",
        "identity.outgoing",
        "identity.settings",
        "identity.watching",
    ),
    "domain": ("identity.domain",),
    "protocol": (
        "identity.provider.assurance",
        "identity.provider.client_authentication",
        "identity.provider.consent",
        "identity.provider.directory",
        "identity.provider.context",
        "identity.provider.endpoints",
        "identity.provider.errors",
        "identity.provider.factor",
        "identity.provider.grant",
        "identity.provider.interaction",
        "identity.provider.known_browser",
        "identity.provider.one_time",
        "identity.provider.parameters",
        "identity.provider.preview",
        "identity.provider.reasons",
        "identity.provider.request",
        "identity.provider.response_type",
        "identity.provider.roles",
        "identity.provider.scope",
        "identity.provider.sign_in_preview",
        "identity.provider.sign_out_way",
        "identity.crypto.base64url",
        "identity.crypto.jwt",
        "identity.crypto.key_sets",
        "identity.crypto.keys",
        "identity.crypto.secrets",
    ),
    "use cases": (
        "identity.services.access",
        "identity.services.attempts",
        "identity.services.audit",
        "identity.services.bundle",
        "identity.services.commands",
        "identity.services.domains",
        "identity.services.figures",
        "identity.services.factors",
        "identity.services.links",
        "identity.services.lookup",
        "identity.services.outbox",
        "identity.services.overview",
        "identity.services.own_data",
        "identity.services.pictures",
        "identity.services.policies",
        "identity.services.records",
        "identity.services.registration",
        "identity.services.remembered_browsers",
        "identity.services.sign_ins",
        "identity.services.signing_keys",
        "identity.services.tickets",
        "identity.services.transfer",
        "identity.services.upstream_providers",
        "identity.services.users",
        "identity.hashing",
    ),
    "requests": (
        "identity.http.cookies",
        "identity.http.documents",
        "identity.http.domain_checks",
        "identity.http.endpoints",
        "identity.http.errors",
        "identity.http.json_object",
        "identity.http.json_stream",
        "identity.http.lists",
        "identity.http.observers",
        "identity.http.locale",
        "identity.http.security",
        "identity.http.sign_ins",
        "identity.http.targets",
        "identity.http.token_previews",
    ),
    "pages": ("identity.pages",),
    "console": (
        "identity.plugins.console.badges",
        "identity.plugins.console.confirm_page",
        "identity.plugins.console.console_form",
        "identity.plugins.console.console_page",
        "identity.plugins.console.fields",
        "identity.plugins.console.hookspecs",
        "identity.plugins.console.list_page",
        "identity.plugins.console.places",
        "identity.plugins.console.sections",
        "identity.plugins.console.show_page",
        "identity.plugins.console.things",
        "identity.plugins.console.user_section",
    ),
    "storage": ("identity.storage",),
    "testing": ("identity.testing",),
}


def is_public(name: str) -> bool:
    """True for ``identity`` itself, and for a module, or a name in one, that plugins may import."""
    if any(part.startswith("_") for part in name.split(".")):
        return False
    modules = (module for family in MODULES.values() for module in family)
    return name == "identity" or any(name == one or name.startswith(f"{one}.") for one in modules)
