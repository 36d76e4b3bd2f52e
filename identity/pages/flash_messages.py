"""What is said after a change: the page is sent to with the id of the change's audit event, and words are made of that.

Nothing is stored, each tab has its own, and nobody can have a page say something that did not happen.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from pyramid.request import Request

from identity.domain.audit import AuditEvent

if TYPE_CHECKING:
    from identity.application import IdentityApplication

#: The parameter that names the event.
FLASH_PARAM = "notice"

_ID = re.compile(r"[0-9a-f-]{36}\Z")
_FLASH_LIFETIME = timedelta(seconds=60)


def path_with_flash(path: str, request: Request, messages: Mapping[str, str]) -> str:
    """The path with what to say about this request: its first event for which there are words, in their order."""
    recorded = {event.event: event for event in request.services.recorded_events}
    event = next((recorded[name] for name in messages if name in recorded), None)
    if event is None:
        return path
    # What is said stands at the top: a fragment would scroll past it.
    path = path.partition("#")[0]
    return f"{path}{'&' if '?' in path else '?'}{FLASH_PARAM}={event.id}"


def flashed_event(request: Request) -> AuditEvent | None:
    """The event that the address names, if whoever looks has done it just now."""
    event_id = request.GET.get(FLASH_PARAM, "")
    if request.method == "POST" or not _ID.match(event_id) or request.identity is None:
        return None
    identity: IdentityApplication = request.registry.application
    event: AuditEvent | None = request.services.storage.audit.find(event_id)
    if event is None or event.actor.id != request.identity.id or identity.clock() - event.at >= _FLASH_LIFETIME:
        return None
    return event
