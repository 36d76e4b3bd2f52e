"""What plugins import that add operations to the management API; they are listed together with ``management``."""

from identity.http.route_contexts import (
    RouteContext,
    instance_context,
    organization_context,
    project_context,
    user_context,
)
from identity.plugins.management.operation import EmptyCommand, Operation, OperationCall, OperationGroup
from identity.plugins.management.representation import Representation
from identity.services.commands import Command
from identity.storage.paging import ResultPage

__all__ = [
    "Command",
    "EmptyCommand",
    "Operation",
    "OperationCall",
    "OperationGroup",
    "Representation",
    "ResultPage",
    "RouteContext",
    "instance_context",
    "organization_context",
    "project_context",
    "user_context",
]
