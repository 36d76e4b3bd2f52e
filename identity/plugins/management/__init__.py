"""The management API: JSON under /management/v1, with a bearer token for the service's own project."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from identity.api.plugins import hookimpl

if TYPE_CHECKING:
    from pyramid.config import Configurator


class ManagementPlugin:
    """Adds the API's routes on the base host."""

    hookspecs = 1

    @dataclass(frozen=True)
    class Settings:
        """None."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_configure(self, config: "Configurator") -> None:
        """Adds the routes of the management API."""
        from identity.plugins.management import api_browser
        from identity.plugins.management.operation_table import OPERATIONS
        from identity.plugins.management.operation_views import add_operations

        config.include("identity.pages")
        config.add_page_templates("identity.plugins.management:templates")
        add_operations(config, OPERATIONS)
        api_browser.add_browser_routes(config)
