"""Hooks of the management API, for plugins with operations."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from identity.plugins.management.operation import OperationGroup

hookspec = pluggy.HookspecMarker("identity")


@hookspec
def management_operations() -> "Iterable[OperationGroup]":  # type: ignore[empty-body]
    """Add operations to the management API.

    Called once at start. Returns ``identity.plugins.management.api.OperationGroup`` values: from each operation follow
    its route below ``/management/v1``, the check of its permission, and its part of the OpenAPI document. A name or a
    method and path that another operation has stops the start, and so does an exception.

    Example::

        @hookimpl(optionalhook=True)
        def management_operations(self):
            return [OperationGroup("Badges", "Badges of people.", (LIST_BADGES,))]
    """
