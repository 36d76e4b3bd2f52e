"""Authorization requests that wait for their user, in SQL."""

import json
from dataclasses import replace
from datetime import datetime

from sqlalchemy import bindparam, delete, insert, select, update

from identity.domain.sessions import PendingAuthorization
from identity.plugins.sql.rows import (
    Prepared,
    SqlStore,
    Values,
    find_by_id,
    listed,
    moment,
    moment_or_none,
    object_of,
    row_of,
    seconds,
    seconds_or_none,
    set_of,
    sorted_list,
    tuple_of,
    versioned,
)
from identity.plugins.sql.tables import authorization_requests as table
from identity.storage.errors import AlreadyUsed, Missing, Stale
from identity.storage.stores.authorization_requests import AuthorizationRequestStore

_COLUMNS = (
    table.c.id,
    table.c.digest,
    table.c.created_at,
    table.c.expires_at,
    table.c.parameters,
    table.c.target,
    table.c.login_name,
    table.c.ui_locales,
    table.c.user_id,
    table.c.authenticated_at,
    table.c.methods,
    table.c.session_id,
    table.c.done,
    table.c.finished_at,
    table.c.version,
)
_UNFINISHED = table.c.finished_at.is_(None)

_ADD = Prepared(insert(table))
_FIND = Prepared(find_by_id(table, _COLUMNS))
_UPDATE = versioned(table).where(_UNFINISHED)
_BEGIN_ANEW = (
    update(table)
    .where(table.c.user_id == bindparam("user"), _UNFINISHED)
    .values(
        user_id=None,
        authenticated_at=None,
        methods=listed(()),
        session_id=None,
        done=sorted_list(frozenset()),
        version=table.c.version + 1,
    )
)
_BEGIN_OTHERS_ANEW = _BEGIN_ANEW.where(table.c.id != bindparam("but"))
_FINISH = Prepared(
    update(table)
    .where(table.c.id == bindparam("key"), table.c.version == bindparam("expected"), _UNFINISHED)
    .values(finished_at=bindparam("at"))
    .returning(*_COLUMNS)
)
_EXPIRED = (
    select(table.c.id)
    .where(table.c.expires_at < bindparam("before"))
    .order_by(table.c.expires_at)
    .limit(bindparam("limit"))
)
_PURGE = delete(table).where(table.c.id.in_(_EXPIRED))


class SqlAuthorizationRequestStore(SqlStore, AuthorizationRequestStore):
    """One row each."""

    def add(self, pending: PendingAuthorization) -> None:
        """Store a new request."""
        self._try(_ADD, _values(pending))

    def find(self, request_id: str) -> PendingAuthorization | None:
        """The request with this id, finished and expired ones included."""
        row = self._one(_FIND, {"key": request_id})
        return None if row is None else _pending_of(*row)

    def update(self, pending: PendingAuthorization) -> None:
        """Replace the stored value by its next version."""
        self._replace(_UPDATE, _values(pending))

    def begin_anew(self, user_id: str, *, but: str | None = None) -> int:
        """Have unfinished requests for which this user proved something begin anew, but one."""
        if but is None:
            return self._change(_BEGIN_ANEW, {"user": user_id})
        return self._change(_BEGIN_OTHERS_ANEW, {"user": user_id, "but": but})

    def finish(self, request_id: str, at: datetime, *, version: int) -> PendingAuthorization:
        """End the request by one conditional write: of racing callers exactly one does; returns it as it was."""
        row = self._one(_FINISH, {"key": request_id, "at": seconds(at), "expected": version})
        if row is not None:
            return replace(_pending_of(*row), finished_at=None)
        stored = self.find(request_id)
        if stored is None:
            raise Missing
        raise Stale(request_id) if stored.finished_at is None else AlreadyUsed(stored)

    def purge(self, before: datetime, limit: int) -> int:
        """Delete requests that expired before."""
        return self._change(_PURGE, {"before": seconds(before), "limit": limit})


@row_of(*_COLUMNS)
def _pending_of(
    id_: str,
    digest: bytes,
    created_at: int,
    expires_at: int,
    parameters: str,
    target: str | None,
    login_name: str,
    ui_locales: str,
    user_id: str | None,
    authenticated_at: int | None,
    methods: str,
    session_id: str | None,
    done: str,
    finished_at: int | None,
    version: int,
) -> PendingAuthorization:
    return PendingAuthorization(
        id=id_,
        digest=digest,
        created_at=moment(created_at),
        expires_at=moment(expires_at),
        parameters=_parameters_of(parameters),
        target=target,
        login_name=login_name,
        ui_locales=ui_locales,
        user_id=user_id,
        authenticated_at=moment_or_none(authenticated_at),
        methods=tuple_of(methods),
        session_id=session_id,
        done=set_of(done),
        finished_at=moment_or_none(finished_at),
        version=version,
    )


def _parameters_of(stored: str) -> dict[str, str]:
    parameters = object_of(stored)
    if any(type(one) is not str for one in parameters.values()):
        raise ValueError("not texts")
    return parameters


def _values(pending: PendingAuthorization) -> Values:
    return {
        "id": pending.id,
        "digest": pending.digest,
        "created_at": seconds(pending.created_at),
        "expires_at": seconds(pending.expires_at),
        "parameters": json.dumps(dict(pending.parameters), ensure_ascii=False),
        "target": pending.target,
        "login_name": pending.login_name,
        "ui_locales": pending.ui_locales,
        "user_id": pending.user_id,
        "authenticated_at": seconds_or_none(pending.authenticated_at),
        "methods": listed(pending.methods),
        "session_id": pending.session_id,
        "done": sorted_list(pending.done),
        "finished_at": seconds_or_none(pending.finished_at),
        "version": pending.version,
    }
