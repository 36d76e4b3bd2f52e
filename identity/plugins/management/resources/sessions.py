"""Sessions: where a person is signed in."""

from typing import Any

from identity.domain.sessions import Session
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import USER
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import DateTime, Representation


class SessionRepresentation(Representation):
    """A person at one browser. The id is the `sid` of ID tokens, `methods` are those of RFC 8176. `impersonator_id` is
    the manager who is signed in as the person, if it is not the person."""

    id: str
    started_at: DateTime
    authenticated_at: DateTime
    last_seen_at: DateTime
    ends_at: DateTime
    methods: tuple[str, ...]
    user_agent: str
    client_address: str
    impersonator_id: str | None


def _represent(_call: OperationCall[Any], session: Session) -> SessionRepresentation:
    return SessionRepresentation.from_value(session, methods=session.amr_methods)


_SESSIONS = ApiResource("session", SessionRepresentation, _represent)

OPERATIONS = (
    _SESSIONS.list(
        USER / "sessions",
        "Lists the live sessions of a person, last seen first; 100 at most.",
        lambda call: call.services.users.list_sessions(call.entity.id),
        is_paged=False,
    ),
    _SESSIONS.delete(
        "end_session",
        USER / "sessions/{session}",
        "Signs a person out of one session: its access tokens end at once.",
        lambda call: call.services.users.end_session(call.entity.id, call.child_id, principal=call.principal),
    ),
    _SESSIONS.delete(
        "end_sessions",
        USER / "sessions",
        "Signs a person out everywhere.",
        lambda call: call.services.users.end_sessions(call.entity.id, principal=call.principal),
    ),
)
