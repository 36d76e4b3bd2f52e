"""The console: pages below /console to manage the service. They use the same services as the API."""

from typing import TYPE_CHECKING, Any

from identity.api.plugins import hookimpl

if TYPE_CHECKING:
    from pyramid.config import Configurator

    from identity.api.services import RecordNamespace


class ConsolePlugin:
    """The console, with a hook that lets other plugins add to its menu."""

    hookspecs = 1

    @hookimpl
    def identity_add_hookspecs(self, host: Any) -> None:
        """Adds the console's own hooks."""
        from identity.plugins.console import hookspecs

        host.add_hookspecs(hookspecs)

    @hookimpl
    def identity_record_namespace(self, namespace: "RecordNamespace") -> None:
        """Keeps the namespace of what managers choose for lists."""
        self._namespace = namespace

    @hookimpl
    def identity_configure(self, config: "Configurator") -> None:
        """Adds the routes and templates of the console."""
        from identity.domain.messages import gettext_lazy
        from identity.plugins.console import list_preferences, pages
        from identity.plugins.console.console_page import CONSOLE_PATH, console_frame
        from identity.plugins.console.resources.impersonation import return_path

        config.include("identity.pages")
        config.add_page_templates("identity.plugins.console:templates")
        config.add_account_menu_entry(gettext_lazy("Console"), CONSOLE_PATH, for_managers=True)
        config.add_account_data("console_lists", list_preferences.export_preferences)
        list_preferences.set_record_namespace(config.registry, self._namespace)
        config.registry.pages.console_frame = console_frame
        config.registry.pages.impersonation_return_path = return_path
        pages.add_console_pages(config)
