"""Audit events: who did what, when and from where."""

from typing import Any

from identity.domain.audit import ActorKind, AuditEvent, AuditFilter, Result
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import AUDIT_EVENT, INSTANCE, ORGANIZATION
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
    group_id: str | None
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


def _represent(_call: OperationCall[Any], event: AuditEvent) -> AuditEventRepresentation:
    return AuditEventRepresentation.from_value(
        event, actor=ActorRepresentation.from_value(event.actor), detail=dict(event.detail)
    )


def _list_events(call: OperationCall[Any], organization_id: str | None) -> ResultPage[AuditEvent]:
    audit_filter = AuditFilter(organization_id=organization_id, **dict(call.filters_as(FilterAuditEvents)))
    return call.filter_page(call.services.audit_trail.page(audit_filter, call.page))


_EVENTS = ApiResource("audit_event", AuditEventRepresentation, _represent)
_FILTERS = (
    "`event` is a full name such as `project.created`, or only a subject such as "
    "`project`. `since` is inclusive, `until` exclusive."
)

OPERATIONS = (
    _EVENTS.list(
        INSTANCE / "audit-events",
        "Lists the audit events of the whole instance, newest first.",
        lambda call: _list_events(call, None),
        has_states=False,
        filters=FilterAuditEvents,
        description=_FILTERS,
    ),
    _EVENTS.list(
        ORGANIZATION / "audit-events",
        "Lists the audit events of an organization, newest first.",
        lambda call: _list_events(call, call.entity.id),
        has_states=False,
        name="list_organization_audit_events",
        filters=FilterAuditEvents,
        description=_FILTERS,
    ),
    _EVENTS.get(AUDIT_EVENT, "Shows an audit event.", lambda call: call.entity),
)
