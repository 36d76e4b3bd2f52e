"""What plugins import that add operations to the management API; they are listed together with ``management``."""

from identity.http.route_contexts import RouteContext, instance_context, organization_context, user_context
from identity.plugins.management.operation import EmptyCommand, Operation, OperationCall, OperationGroup
from identity.plugins.management.representation import Representation
from identity.services.commands import Command

__all__ = [
    "Command",
    "EmptyCommand",
    "Operation",
    "OperationCall",
    "OperationGroup",
    "Representation",
    "RouteContext",
    "instance_context",
    "organization_context",
    "user_context",
]
