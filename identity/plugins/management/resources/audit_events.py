"""Audit events: who did what, when and from where."""

from collections.abc import Callable
from typing import Any

from identity.domain import audit
from identity.domain.audit import ActorKind, AuditFilter, Result
from identity.http import route_contexts
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import DateTime, Representation
from identity.services.commands import Command
from identity.services.commands.field_types import Timestamp as GivenMoment
from identity.storage.paging import ResultPage


class ActorRepresentation(Representation):
    """Who acted, by which client (`client_id`, an application's or a service user's) and in which session, and from
    where."""

    kind: ActorKind
    id: str | None
    client_id: str | None
    session_id: str | None
    client_address: str | None
    request_id: str | None


class AuditEventRepresentation(Representation):
    """One entry of the audit trail, without secrets. `detail` describes the change, or is `erased` if it was about a
    person who is deleted. The rest never changes.
    """

    id: str
    at: DateTime
    event: str
    result: Result
    reason: str | None
    actor: ActorRepresentation
    object_kind: str
    object_id: str | None
    user_id: str | None
    organization_id: str | None
    detail: dict[str, Any]


class FilterAuditEvents(Command):
    """Filters of audit events; an event has to match all of them."""

    event: str = ""
    actor_id: str = ""
    object_id: str = ""
    request_id: str = ""
    result: Result | None = None
    since: GivenMoment | None = None
    until: GivenMoment | None = None


def _represent(_call: OperationCall, event: audit.AuditEvent) -> AuditEventRepresentation:
    return AuditEventRepresentation.from_value(
        event, actor=ActorRepresentation.from_value(event.actor), detail=dict(event.detail)
    )


def _list_events(organization_id: Callable[[OperationCall], str | None]) -> Callable[[OperationCall], ResultPage[Any]]:
    def fetch(call: OperationCall) -> ResultPage[Any]:
        audit_filter = AuditFilter(organization_id=organization_id(call), **dict(call.filters))
        return call.filter_page(call.services.audit_trail.page(audit_filter, call.page))

    return fetch


_EVENTS = ApiResource(
    kind="audit_event",
    representation=AuditEventRepresentation,
    path="/audit-events/{audit_event}",
    context_factory=route_contexts.audit_event_context,
    parent_context_factory=route_contexts.instance_context,
    represent=_represent,
)
_LIST: dict[str, Any] = {
    "description": "`event` is a whole name such as `project.created`, or a subject alone such as `project`. `since`"
    " itself fits, `until` does not.",
    "filters": FilterAuditEvents,
    "states": False,
}

OPERATIONS = (
    _EVENTS.list_operation(
        "Lists the audit events of the whole instance, newest first.", _list_events(lambda _: None), **_LIST
    ),
    _EVENTS.list_operation(
        "Lists the audit events of an organization, newest first.",
        _list_events(lambda call: call.entity.id),
        name="list_organization_audit_events",
        path="/organizations/{organization}/audit-events",
        owner=route_contexts.organization_context,
        **_LIST,
    ),
    _EVENTS.get_operation("Shows an audit event."),
)
