"""The management API: JSON under /management/v1, with a bearer token for the service's own project."""

from typing import TYPE_CHECKING, Any

from identity.api.plugins import hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyramid.config import Configurator

    from identity.api.endpoints import Endpoint
    from identity.pages.layout import NavigationItem


class ManagementPlugin:
    """The management API."""

    hookspecs = 1

    @hookimpl
    def identity_add_hookspecs(self, host: Any) -> None:
        """Adds the hook for operations of other plugins."""
        from identity.plugins.management import hookspecs

        host.add_hookspecs(hookspecs)

    @hookimpl
    def identity_endpoints(self) -> "Iterable[Endpoint]":
        """The metadata of the management API."""
        from identity.plugins.management.resource_metadata import ENDPOINT

        return [ENDPOINT]

    @hookimpl
    def identity_configure(self, config: "Configurator") -> None:
        """Adds the routes of the management API."""
        from identity.plugins.management import api_browser, api_console
        from identity.plugins.management.operation_table import OPERATION_GROUPS
        from identity.plugins.management.operation_views import (
            PATH_PREFIX,
            add_operation_routes,
            create_operation_views,
        )
        from identity.plugins.management.resource_metadata import metadata_url

        settings = config.registry.application.settings
        config.include("identity.pages")
        config.add_page_templates("identity.plugins.management:templates")
        offers = config.registry.application.plugin_host.extensions("management_operations")
        groups = (*OPERATION_GROUPS, *(offer.value for offer in offers))
        views = create_operation_views(operation for group in groups for operation in group.operations)
        add_operation_routes(config, views)
        config.add_resource_metadata(PATH_PREFIX, metadata_url(settings.base_url))
        reader = api_browser.OpenApiReader(settings.base_url, groups)
        api_browser.add_browser_routes(config, reader)
        api_console.add_console_pages(config, groups, views, reader)

    @hookimpl(optionalhook=True)
    def console_navigation(self) -> "Iterable[NavigationItem]":
        """A link to the pages that try operations."""
        from identity.domain.messages import gettext_lazy
        from identity.pages.layout import NavigationItem
        from identity.plugins.management.api_browser import TRY_PATH

        return [NavigationItem(label=gettext_lazy("Management API"), href=TRY_PATH, icon="apps")]
