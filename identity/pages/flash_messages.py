"""Flash messages: a redirect carries the id of the change's audit event, and the next page makes the message from it.

Nothing is stored, each tab has its own message, and no link can show a message about a change that did not happen.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from pyramid.request import Request

from identity.domain.audit import AuditEvent

if TYPE_CHECKING:
    from identity.application import IdentityApplication

#: The parameter with the event's id.
FLASH_PARAM = "notice"

_ID = re.compile(r"[0-9a-f-]{36}\Z")
_FLASH_LIFETIME = timedelta(seconds=60)


def path_with_flash(path: str, request: Request, messages: Mapping[str, str]) -> str:
    """The path with this request's first event that has a message, in the order of ``messages``."""
    recorded = {event.event: event for event in request.services.recorded_events}
    event = next((recorded[name] for name in messages if name in recorded), None)
    if event is None:
        return path
    # The message is at the top of the page; a fragment would scroll past it.
    path = path.partition("#")[0]
    return f"{path}{'&' if '?' in path else '?'}{FLASH_PARAM}={event.id}"


def flashed_event(request: Request) -> AuditEvent | None:
    """The event named in the URL, if the signed-in user caused it a moment ago."""
    event_id = request.GET.get(FLASH_PARAM, "")
    if request.method == "POST" or not _ID.match(event_id) or request.identity is None:
        return None
    identity: IdentityApplication = request.registry.application
    event: AuditEvent | None = request.services.storage.audit.find(event_id)
    if event is None or event.actor.id != request.identity.id or identity.clock() - event.at >= _FLASH_LIFETIME:
        return None
    return event
