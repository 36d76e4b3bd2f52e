"""What plugins import that add pages to the console; they are listed together with ``console``."""

from identity.http.route_contexts import instance_context, organization_context
from identity.plugins.console.console_page import CONSOLE_PATH
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.routes import ConsoleRoute, add_console_routes
from identity.storage.paging import PageRequest, ResultPage
from identity.storage.stores.users import UserKind

__all__ = [
    "CONSOLE_PATH",
    "Cells",
    "ConsoleRoute",
    "ListPage",
    "PageRequest",
    "ResultPage",
    "UserKind",
    "add_console_routes",
    "instance_context",
    "organization_context",
]
