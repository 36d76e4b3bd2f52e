"""The API for plugins that add pages to the console; list them together with ``console``."""

from identity.plugins.console.console_page import CONSOLE_PATH, ConsolePage
from identity.plugins.console.lists import Cells, ResourceList, list_route
from identity.plugins.console.resource_types import INSTANCE, ORGANIZATION
from identity.plugins.console.routes import ConsoleRoute, add_console_routes
from identity.storage.paging import PageRequest, ResultPage
from identity.storage.stores.users import UserKind

__all__ = [
    "CONSOLE_PATH",
    "INSTANCE",
    "ORGANIZATION",
    "Cells",
    "ConsolePage",
    "ConsoleRoute",
    "PageRequest",
    "ResourceList",
    "ResultPage",
    "UserKind",
    "add_console_routes",
    "list_route",
]
