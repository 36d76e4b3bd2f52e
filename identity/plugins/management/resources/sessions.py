"""Sessions: where a person is signed in."""

from identity.http import targets
from identity.plugins.management.representation import Moment, Representation
from identity.plugins.management.resource import Resource


class Session(Representation):
    """A person at one browser. The id is the `sid` of ID tokens, `methods` are those of RFC 8176."""

    id: str
    started_at: Moment
    authenticated_at: Moment
    last_seen_at: Moment
    ends_at: Moment
    methods: tuple[str, ...]
    user_agent: str
    client_address: str


_LIST = "/users/{user}/sessions"
_SESSIONS = Resource(
    kind="session",
    answers=Session,
    path=f"{_LIST}/{{session}}",
    target=targets.user,
    use_cases="users",
)

OPERATIONS = (
    _SESSIONS.lists(
        "Lists the live sessions of a person, last seen first; 100 at most.",
        lambda call: call.services.users.sessions(call.value.id),
        paged=False,
    ),
    _SESSIONS.removes(
        "Signs a person out of one session: its access tokens end at once.",
        _SESSIONS.of_part("end_session"),
        verb="end",
    ),
    _SESSIONS.removes(
        "Signs a person out everywhere.",
        lambda call: call.services.users.end_sessions(call.value.id, by=call.by),
        name="end_sessions",
        path=_LIST,
    ),
)
