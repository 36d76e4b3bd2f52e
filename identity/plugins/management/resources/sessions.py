"""Sessions: where a person is signed in."""

from identity.domain.sessions import Session
from identity.http import route_contexts
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import DateTime, Representation


class SessionRepresentation(Representation):
    """A person at one browser. The id is the `sid` of ID tokens, `methods` are those of RFC 8176."""

    id: str
    started_at: DateTime
    authenticated_at: DateTime
    last_seen_at: DateTime
    ends_at: DateTime
    methods: tuple[str, ...]
    user_agent: str
    client_address: str


def _represent(_call: OperationCall, session: Session) -> SessionRepresentation:
    return SessionRepresentation.from_value(session, methods=session.amr_methods)


_LIST = "/users/{user}/sessions"
_SESSIONS = ApiResource(
    kind="session",
    representation=SessionRepresentation,
    path=f"{_LIST}/{{session}}",
    context_factory=route_contexts.user_context,
    service="users",
    represent=_represent,
)

OPERATIONS = (
    _SESSIONS.list_operation(
        "Lists the live sessions of a person, last seen first; 100 at most.",
        lambda call: call.services.users.list_sessions(call.entity.id),
        paged=False,
    ),
    _SESSIONS.delete_operation(
        "Signs a person out of one session: its access tokens end at once.",
        _SESSIONS.child_handler("end_session"),
        verb="end",
    ),
    _SESSIONS.delete_operation(
        "Signs a person out everywhere.",
        lambda call: call.services.users.end_sessions(call.entity.id, principal=call.principal),
        name="end_sessions",
        path=_LIST,
    ),
)
