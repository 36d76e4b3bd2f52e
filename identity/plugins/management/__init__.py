"""The management API: JSON under /management/v1, with a bearer token for the service's own project."""

from typing import TYPE_CHECKING, Any

from identity.api.plugins import hookimpl

if TYPE_CHECKING:
    from pyramid.config import Configurator


class ManagementPlugin:
    """The management API."""

    hookspecs = 1

    @hookimpl
    def identity_add_hookspecs(self, host: Any) -> None:
        """Adds the hook for operations of other plugins."""
        from identity.plugins.management import hookspecs

        host.add_hookspecs(hookspecs)

    @hookimpl
    def identity_configure(self, config: "Configurator") -> None:
        """Adds the routes of the management API."""
        from identity.plugins.management import api_browser
        from identity.plugins.management.operation_table import OPERATION_GROUPS
        from identity.plugins.management.operation_views import add_operations

        config.include("identity.pages")
        config.add_page_templates("identity.plugins.management:templates")
        offers = config.registry.application.plugin_host.extensions("management_operations")
        groups = (*OPERATION_GROUPS, *(offer.value for offer in offers))
        add_operations(config, (operation for group in groups for operation in group.operations))
        api_browser.add_browser_routes(config, groups)
