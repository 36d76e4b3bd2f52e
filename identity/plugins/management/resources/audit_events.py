"""Audit events: who did what, when and from where."""

from collections.abc import Callable
from typing import Any

from identity.domain import audit
from identity.domain.audit import ActorKind, AuditFilter, Result
from identity.http import targets
from identity.plugins.management.operation import Call
from identity.plugins.management.representation import Moment, Representation
from identity.plugins.management.resource import Resource
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
    """One line of the audit trail. It holds no secret; `detail` says what became of what, or `erased` where that was
    about a person who is deleted. The rest never changes."""

    id: str
    at: Moment
    event: str
    result: Result
    reason: str | None
    actor: Actor
    object_kind: str
    object_id: str | None
    user_id: str | None
    organization_id: str | None
    detail: dict[str, Any]


class FilterAuditEvents(Command):
    """Which events are wanted: those that fit everything given."""

    event: str = ""
    actor_id: str = ""
    object_id: str = ""
    request_id: str = ""
    result: Result | None = None
    since: GivenMoment | None = None
    until: GivenMoment | None = None


def _shown(_call: Call, event: audit.AuditEvent) -> AuditEvent:
    return AuditEvent.of(event, actor=Actor.of(event.actor), detail=dict(event.detail))


def _events(organization_id: Callable[[Call], str | None]) -> Callable[[Call], Page[Any]]:
    def fetch(call: Call) -> Page[Any]:
        wanted = AuditFilter(organization_id=organization_id(call), **dict(call.filters))
        return call.listed(call.services.audit_trail.page(wanted, call.page))

    return fetch


_EVENTS = Resource(
    kind="audit_event",
    answers=AuditEvent,
    path="/audit-events/{audit_event}",
    target=targets.audit_event,
    owner=targets.instance,
    show=_shown,
)
_LIST: dict[str, Any] = {
    "description": "`event` is a whole name such as `project.created`, or a subject alone such as `project`. `since`"
    " itself fits, `until` does not.",
    "filters": FilterAuditEvents,
    "states": False,
}

OPERATIONS = (
    _EVENTS.lists("Lists the audit events of the whole instance, newest first.", _events(lambda _: None), **_LIST),
    _EVENTS.lists(
        "Lists the audit events of an organization, newest first.",
        _events(lambda call: call.value.id),
        name="list_organization_audit_events",
        path="/organizations/{organization}/audit-events",
        owner=targets.organization,
        **_LIST,
    ),
    _EVENTS.shows("Shows an audit event."),
)
