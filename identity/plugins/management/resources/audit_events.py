"""Audit events: who did what, when and from where."""

from typing import Any

from identity.domain import audit
from identity.domain.audit import ActorKind, AuditFilter, Result
from identity.http import targets
from identity.plugins.management.operation import PAGED, Call, Operation
from identity.plugins.management.representation import Moment, Representation
from identity.services.commands import Command
from identity.services.commands.fields import Moment as GivenMoment
from identity.storage.paging import Page


class Actor(Representation):
    """Who acted, by which client (`client_id`, an application's or a service user's) and in which session, and from
    where."""

    kind: ActorKind
    id: str | None
    client_id: str | None
    session_id: str | None
    client_address: str | None
    request_id: str | None


class AuditEvent(Representation):
    """One line of the audit trail. It never changes and holds no secret; `detail` says what became of what."""

    id: str
    at: Moment
    event: str
    result: Result
    reason: str | None
    actor: Actor
    object_kind: str
    object_id: str | None
    organization_id: str | None
    detail: dict[str, Any]


class FilterAuditEvents(Command):
    """Which events are wanted: those that fit everything given."""

    event: str = ""
    actor_id: str = ""
    object_id: str = ""
    result: Result | None = None
    since: GivenMoment | None = None
    until: GivenMoment | None = None


def _shown(event: audit.AuditEvent) -> AuditEvent:
    return AuditEvent.of(event, actor=Actor.of(event.actor), detail=dict(event.detail))


def _events(call: Call, organization_id: str | None) -> Page[AuditEvent]:
    wanted = AuditFilter(organization_id=organization_id, **dict(call.filters))
    page = call.services.access.page_of(call.by, call.services.audit_trail.page(wanted, call.page))
    return page.showing(map(_shown, page))


def _list(call: Call) -> Page[AuditEvent]:
    return _events(call, None)


def _list_of_organization(call: Call) -> Page[AuditEvent]:
    return _events(call, call.value.id)


def _show(call: Call) -> AuditEvent:
    return _shown(call.value)


_LIST: dict[str, Any] = {
    "method": "GET",
    "description": "`event` is a whole name such as `project.created`, or a subject alone such as `project`. `since`"
    " itself fits, `until` does not.",
    "permission": "audit_event.read",
    "answers": AuditEvent,
    "many": True,
    "filters": FilterAuditEvents,
    "parameters": PAGED,
}

OPERATIONS = (
    Operation(
        name="list_audit_events",
        path="/audit-events",
        summary="Lists the audit events of the whole instance, newest first.",
        target=targets.instance,
        handle=_list,
        **_LIST,
    ),
    Operation(
        name="list_organization_audit_events",
        path="/organizations/{organization}/audit-events",
        summary="Lists the audit events of an organization, newest first.",
        target=targets.organization,
        handle=_list_of_organization,
        **_LIST,
    ),
    Operation(
        name="show_audit_event",
        method="GET",
        path="/audit-events/{audit_event}",
        summary="Shows an audit event.",
        permission="audit_event.read",
        target=targets.audit_event,
        handle=_show,
        answers=AuditEvent,
    ),
)
