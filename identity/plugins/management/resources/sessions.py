"""Sessions: where a person is signed in."""

from identity.http import targets
from identity.plugins.management.operation import Call, Operation, shown
from identity.plugins.management.representation import Moment, Representation
from identity.storage.paging import Page


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


def _list(call: Call) -> Page[Session]:
    return shown(Session, call.services.users.sessions(call.value.id))


def _end(call: Call) -> None:
    call.services.users.end_session(call.value.id, call.names["session"], by=call.by)


def _end_all(call: Call) -> None:
    call.services.users.end_sessions(call.value.id, by=call.by)


_LIST = "/users/{user}/sessions"

OPERATIONS = (
    Operation(
        name="list_sessions",
        method="GET",
        path=_LIST,
        summary="Lists the live sessions of a person, last seen first; 100 at most.",
        permission="session.read",
        target=targets.user,
        handle=_list,
        answers=Session,
        many=True,
    ),
    Operation(
        name="end_session",
        method="DELETE",
        path=f"{_LIST}/{{session}}",
        summary="Signs a person out of one session: its access tokens end at once.",
        permission="session.delete",
        target=targets.user,
        handle=_end,
    ),
    Operation(
        name="end_sessions",
        method="DELETE",
        path=_LIST,
        summary="Signs a person out everywhere.",
        permission="session.delete",
        target=targets.user,
        handle=_end_all,
    ),
)
