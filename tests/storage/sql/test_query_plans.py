"""One statement where one is promised, and an index for each that runs often or over many rows."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, PrimaryKeyConstraint, Table, UniqueConstraint, event

from identity.domain.attempts import AttemptAllowance
from identity.domain.audit import AuditFilter, Result
from identity.domain.deletion_impact import DeletionTarget
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.service_user_keys import ServiceUserKey
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.plugins.sql import SqlBackend
from identity.plugins.sql.statements import StatementText
from identity.plugins.sql.tables import metadata
from identity.storage.backend import Storage
from identity.storage.contract.factories import (
    NOW,
    make_access_token,
    make_application,
    make_audit_event,
    make_authorization_code,
    make_client_secret,
    make_human_user,
    make_manager,
    make_organization,
    make_outbox_message,
    make_pending_authorization,
    make_personal_access_token,
    make_project,
    make_project_grant,
    make_record,
    make_refresh_token,
    make_service_user,
    make_service_user_key,
    make_service_user_secret,
    make_session,
    make_token_family,
    make_user_grant,
)
from identity.storage.contract.harness import add
from identity.storage.contract.transaction_manager import ContractTransactionManager, committed_transaction
from identity.storage.paging import PageCursor, PageRequest, SortOrder
from identity.storage.stores.purges import LEGAL_HOLD_KINDS, PurgeKind
from identity.storage.stores.users import USER_SORT_KEYS, UserKind

ORGANIZATION = make_organization()
PROJECT = make_project(ORGANIZATION)
APPLICATION = make_application(PROJECT)
PERSON = make_human_user(ORGANIZATION)
ROBOT = make_service_user(ORGANIZATION)
KEY = make_service_user_key(ROBOT)
SECRET = make_service_user_secret(ROBOT)
PERSONAL = make_personal_access_token(ROBOT)
SESSION = make_session(PERSON)
FAMILY = make_token_family(PERSON, APPLICATION)
TOKEN = make_access_token(PERSON, APPLICATION, FAMILY, session_id=SESSION.id)
REFRESH = make_refresh_token(FAMILY, session_id=SESSION.id)
ROTATED = make_refresh_token(FAMILY, rotated_at=NOW)
SUCCESSOR = make_refresh_token(FAMILY, predecessor_id=ROTATED.id)
CODE = make_authorization_code(FAMILY, session_id=SESSION.id)
PENDING = make_pending_authorization(APPLICATION)
RECORD = make_record(PERSON, APPLICATION)
THIS_RECORD = (RECORD.plugin, RECORD.kind, RECORD.key)
MESSAGE = make_outbox_message()
MANAGER = make_manager(PERSON)
LENT = make_project_grant(PROJECT, ORGANIZATION)
GRANT = make_user_grant(PERSON, PROJECT)
EVENT = make_audit_event()
VALUES = (
    ORGANIZATION, PROJECT, APPLICATION, PERSON, ROBOT, KEY, SECRET, SESSION, FAMILY, TOKEN, REFRESH, ROTATED, SUCCESSOR,
    CODE, PENDING, MESSAGE, MANAGER, LENT, GRANT, PERSONAL, RECORD,
)  # fmt: skip
DIGESTS = [SESSION.digest, *(bytes([number]) * 32 for number in range(4))]
LATER = NOW + timedelta(days=100)
SOME_IDS = [item.id for item in (ORGANIZATION, PROJECT, APPLICATION, PERSON, ROBOT, LENT)]
REFUSED_THERE = AuditFilter(organization_id=ORGANIZATION.id, result=Result.REFUSED)
AFTER = PageRequest(limit=10, cursor=PageCursor("b", "0"))
NEWER = PageRequest(limit=10, cursor=PageCursor(str(int(NOW.timestamp())), "0"))

Call = Callable[[Storage], object]


def call(method: str, *arguments: Any, **named: Any) -> Call:
    """Calls this method of this store."""
    store, _, name = method.partition(".")
    return lambda storage: getattr(getattr(storage, store), name)(*arguments, **named)


READS: dict[str, Call] = {
    "find_issued": call("tokens.find_issued", TOKEN.digest),
    "find_presented": call("tokens.find_presented", REFRESH.digest),
    "connections": call("tokens.connections_of_user", PERSON.id, NOW),
    "find code": call("tokens.find_code", CODE.digest),
    "find session": call("sessions.find", SESSION.id),
    "sessions of_browser": call("sessions.of_browser", DIGESTS[:1]),
    "sessions of_browser, many": call("sessions.of_browser", DIGESTS),
    "sessions open": call("sessions.open", ORGANIZATION.id, NOW, 10),
    "sessions open, all": call("sessions.open", None, NOW, 10),
    "sessions of_user": call("sessions.of_user", PERSON.id, NOW),
    "find pending": call("authorization_requests.find", PENDING.id),
    "find record": call("records.find", *THIS_RECORD),
    "records of user": call("records.of_owner", *THIS_RECORD[:2], user_id=PERSON.id),
    "records of application": call("records.of_owner", *THIS_RECORD[:2], application_id=APPLICATION.id),
    "records of both": call("records.of_owner", *THIS_RECORD[:2], user_id=PERSON.id, application_id=APPLICATION.id),
    "messages waiting": call("outbox.waiting", "mail", NOW, 10),
    "messages backlog": call("outbox.backlog", "mail", NOW),
    "is_origin": call("applications.is_origin", "https://shop.example"),
    "find_by_email": call("users.find_by_email", ORGANIZATION.id, "ada@acme.example"),
    "find_by_verified_email": call("users.find_by_verified_email", "ada@acme.example", proven=True, active=True),
    "find_by_verified_email there": call(
        "users.find_by_verified_email", "ada@acme.example", organization_id=ORGANIZATION.id
    ),
    "find_client": call("applications.find_client", APPLICATION.id),
    "find_signer": call("credentials.find_signer", KEY.id, ROBOT.id),
    "find_holder": call("credentials.find_holder", ROBOT.id),
    "secrets of_user": call("credentials.secrets", ROBOT.id),
    "find_subject": call("users.find_subject", PERSON.id),
    "find_by_login_name": call("users.find_by_login_name", f"ada@{ORGANIZATION.primary_domain}"),
    "find_by_bare_name": call("users.find_by_bare_name", PERSON.user_name, first_in=ORGANIZATION.id),
    "find_by_domain": call("organizations.find_by_domain", ORGANIZATION.primary_domain),
    "managers of_user": call("managers.of_user", PERSON.id),
    "managers page": call("managers.page", MANAGER.resource, NEWER),
    "effective": call("user_grants.effective", PERSON.id, frozenset({PROJECT.id})),
    "audience": call("projects.audience", frozenset({PROJECT.id}), ORGANIZATION.id),
    "expiring": call("credentials.expiring", ServiceUserKey, NOW, LATER, 10),
    "keys page": call("credentials.page", ServiceUserKey, ROBOT.id, NEWER),
    "organizations page": call("organizations.page", AFTER),
    "applications page": call("applications.page", PROJECT.id, AFTER),
    "users page": call("users.page", ORGANIZATION.id, UserKind.HUMAN, AFTER),
    "users page of both kinds": call("users.page", ORGANIZATION.id, None, AFTER),
    "users page, deactivated": call("users.page", ORGANIZATION.id, None, PageRequest(active=False)),
    **{
        f"users by {user_sort_key}": call(
            "users.page", ORGANIZATION.id, UserKind.HUMAN, PageRequest(sort=SortOrder(user_sort_key, descending=True))
        )
        for user_sort_key in USER_SORT_KEYS
    },
    "users page of all": call("users.page", None, UserKind.HUMAN, AFTER),
    "find organizations": call("organizations.find_many", SOME_IDS),
    "find projects": call("projects.find_many", SOME_IDS),
    "find applications": call("applications.find_many", SOME_IDS),
    "find project grants": call("project_grants.find_many", SOME_IDS),
    "find subjects": call("users.find_subjects", SOME_IDS),
    "counts": call("projects.counts", SOME_IDS),
    "key summaries": call("credentials.key_summaries", SOME_IDS, NOW),
    "must_change": call("users.must_change_password", SOME_IDS),
    "expiring of organization": call(
        "credentials.expiring", ServiceUserKey, NOW, LATER, 10, organization_id=ORGANIZATION.id
    ),
    "personal access tokens page": call("credentials.page", PersonalAccessToken, ROBOT.id, NEWER),
    "find personal access token": call("credentials.find", PersonalAccessToken, PERSONAL.id, ROBOT.id),
    "personal access tokens expiring": call("credentials.expiring", PersonalAccessToken, NOW, LATER, 10),
    "grants of project grant": call("user_grants.page", "project_grant_id", LENT.id, NEWER),
    "effects of organization": call("effects.of", DeletionTarget.ORGANIZATION, ORGANIZATION.id, NOW),
    "effects of project": call("effects.of", DeletionTarget.PROJECT, PROJECT.id, NOW),
    "effects of application": call("effects.of", DeletionTarget.APPLICATION, APPLICATION.id, NOW),
    "effects of user": call("effects.of", DeletionTarget.USER, PERSON.id, NOW),
    "effects of key": call("effects.of", DeletionTarget.KEY, KEY.id, NOW),
    "effects of secret": call("effects.of", DeletionTarget.SECRET, SECRET.id, NOW),
    "effects of project grant": call("effects.of", DeletionTarget.PROJECT_GRANT, LENT.id, NOW),
    "audit by subject": call("audit.page", filter=AuditFilter(event="user")),
    "audit of organization by subject": call(
        "audit.page", filter=AuditFilter(organization_id=ORGANIZATION.id, event="user")
    ),
    "refused of organization": call("audit.page", filter=REFUSED_THERE),
    "refused": call("audit.page", filter=AuditFilter(result=Result.REFUSED)),
    "audit of party": call("audit.page", filter=AuditFilter(involved_id=EVENT.object_id or "")),
    "audit of organization": call("audit.page", filter=AuditFilter(organization_id=ORGANIZATION.id)),
    "audit of object": call("audit.page", filter=AuditFilter(object_id=PERSON.id)),
    "audit of request": call("audit.page", filter=AuditFilter(request_id="request")),
    "audit of actor": call("audit.page", filter=AuditFilter(actor_id=PERSON.id)),
    "audit by event": call("audit.page", filter=AuditFilter(event="user.created")),
    **{f"due {purged}": call("purges.find", purged, NOW, 1000) for purged in PurgeKind},
    **{
        f"due {purged}, held": call("purges.find", purged, NOW, 1000, held=("x",))
        for purged in sorted(LEGAL_HOLD_KINDS)
    },
    **{f"overdue {purged}": call("purges.over", purged, NOW, 1000) for purged in PurgeKind},
}
WRITES: dict[str, Call] = {
    "add_access": call("tokens.add_access", make_access_token(ROBOT, key_id=KEY.id)),
    "add_access by secret": call("tokens.add_access", make_access_token(ROBOT, secret_id=SECRET.id)),
    "add service user secret": call("credentials.add", make_service_user_secret(ROBOT)),
    "remove service user secret": call("credentials.remove", ServiceUserSecret, ROBOT.id, SECRET.id),
    "redeem": call("tokens.redeem_code", CODE.digest, client_id=APPLICATION.id, at=NOW),
    "add session": call("sessions.add", make_session(PERSON)),
    "reauthenticate": call(
        "sessions.reauthenticate", SESSION.id, digest=DIGESTS[1], proofs=(), authenticated_at=NOW, at=NOW, ends_at=LATER
    ),
    "touch session": call("sessions.touch", SESSION.id, LATER),
    "select session": call("sessions.select", SESSION.id, LATER),
    "end session": call("sessions.end", SESSION.id, NOW),
    "end_of_user": call("sessions.end_of_user", PERSON.id, NOW),
    "end_of_user but one": call("sessions.end_of_user", PERSON.id, NOW, but=SESSION.id),
    "finish": call("authorization_requests.finish", PENDING.id, NOW, version=1),
    "begin anew": call("authorization_requests.begin_anew", PERSON.id),
    "begin others anew": call("authorization_requests.begin_anew", PERSON.id, but=PENDING.id),
    "is_still": call("users.is_password_still", PERSON.id, "$argon2id$"),
    "update pending": call("authorization_requests.update", replace(PENDING, version=2)),
    "reserve": call("attempts.reserve", "ada", at=NOW, user_id=PERSON.id),
    "give_back": call("attempts.give_back", "ada", AttemptAllowance(True, 1, NOW), at=NOW),
    "clear_of_user": call("attempts.clear_of_user", PERSON.id),
    "count": call("attempts.count", "address", at=NOW, span=LATER - NOW, most=1),
    "uncount": call("attempts.uncount", "address", at=NOW, span=LATER - NOW),
    "add record": call("records.add", make_record()),
    "add record of user": call("records.add", make_record(PERSON)),
    "add record for expired one": call("records.add", make_record(), replacing_expired=True),
    "take record": call("records.take", *THIS_RECORD, NOW),
    "replace record": call("records.replace", replace(RECORD, version=2)),
    "drop record": call("records.drop", *THIS_RECORD),
    "drop records": call("records.drop_of_owner", *THIS_RECORD[:2], user_id=PERSON.id),
    "postpone": call("outbox.postpone", MESSAGE.id, LATER),
    "remove message": call("outbox.remove", MESSAGE.id),
    "add code": call("tokens.add_code", make_authorization_code(FAMILY)),
    "start_family": call("tokens.start_family", make_token_family(PERSON, APPLICATION)),
    "add_refresh": call("tokens.add_refresh", make_refresh_token(FAMILY)),
    "revoke_of_user, one client": call("tokens.revoke_of_user", PERSON.id, NOW, client_id=APPLICATION.id),
    "touch": call("credentials.touch", ServiceUserKey, {KEY.id: NOW}),
    "append": call("audit.append", EVENT),
    "note_sign_in": call("users.note_sign_in", PERSON.id, NOW),
    "touch client secret": call("applications.touch_secrets", {"secret": NOW}),
    "touch service user secret": call("credentials.touch", ServiceUserSecret, {SECRET.id: NOW}),
    "touch personal access token": call("credentials.touch", PersonalAccessToken, {PERSONAL.id: NOW}),
    "remove personal access token": call("credentials.remove", PersonalAccessToken, ROBOT.id, PERSONAL.id),
    "revoke_family": call("tokens.revoke_family", FAMILY.id, NOW),
    "revoke_access": call("tokens.revoke_access", TOKEN.digest, NOW),
}
#: A key of each kind that is purged, as far as it is not an id.
KEYS: dict[PurgeKind, Any] = {
    **dict.fromkeys((PurgeKind.ACCESS_TOKENS, PurgeKind.REFRESH_TOKENS, PurgeKind.CODES), b"digest"),
    PurgeKind.RECORDS: ("plugin", "kind", b"key"),
    PurgeKind.AUDIT_EVENTS: 1,
}
#: These take several statements.
INDEXED: dict[str, Call] = {
    "organizations by query": call("organizations.page", PageRequest(query="ac")),
    "projects by query": call("projects.page", ORGANIZATION.id, PageRequest(query="ro")),
    "users by query": call("users.page", ORGANIZATION.id, UserKind.HUMAN, PageRequest(query="ad")),
    "users by query, all": call("users.page", None, None, PageRequest(query="ad")),
    "users by query, sorted": call(
        "users.page",
        ORGANIZATION.id,
        UserKind.HUMAN,
        PageRequest(query="ad", sort=SortOrder("last_sign_in_at", descending=True)),
    ),
    "users counted": call("users.page", ORGANIZATION.id, None, PageRequest(with_total=True)),
    "address as login name": call("users.has_address_as_login_name", ORGANIZATION.id, "acme.example"),
    "audit counted": call("audit.page", PageRequest(with_total=True), REFUSED_THERE),
    **{f"purge {purged}": call("purges.delete", purged, 20 * [KEYS.get(purged, "id")], NOW) for purged in PurgeKind},
    **{
        f"purge {purged}, held": call("purges.delete", purged, 20 * [KEYS.get(purged, "id")], NOW, held=("x",))
        for purged in sorted(LEGAL_HOLD_KINDS)
    },
    "rotate": call("tokens.rotate", REFRESH.digest, make_refresh_token(FAMILY), NOW),
    "replace_successor": call("tokens.replace_successor", ROTATED, make_refresh_token(FAMILY), NOW),
    "refused reserve": lambda storage: [storage.attempts.reserve("ada", reserved_at=NOW) for _ in range(6)],
    "refused record": call("records.add", RECORD, replacing_expired=True),
    "audit after": call("audit.after", 1, 10, REFUSED_THERE),
    "effects of role": call("effects.of_role", PROJECT.id, "reader"),
    "update application": call("applications.update", replace(APPLICATION, version=2)),
    "revoke_of_user": call("tokens.revoke_of_user", PERSON.id, NOW),
    "remove user": call("users.remove", PERSON.id),
}


class Statements:
    """What was sent to the database."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Any]] = []

    def note(self, _connection: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:
        if not statement.startswith(("EXPLAIN", "SET", "SAVEPOINT", "RELEASE")):
            self.sent.append((statement, parameters))


@pytest.fixture
def statements(backend: SqlBackend, monkeypatch: pytest.MonkeyPatch) -> Iterator[Statements]:
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        for value in VALUES:
            add(storage, value)
        storage.applications.add_secret(APPLICATION.id, make_client_secret())
    noted = Statements()
    given_of = StatementText.bind_parameters

    def noting(text: StatementText, parameters: dict[str, Any]) -> Any:
        given = given_of(text, parameters)
        noted.sent.append((text.sql, given))
        return given

    # What is prepared goes to the driver directly, past SQLAlchemy's events.
    monkeypatch.setattr(StatementText, "bind_parameters", noting)
    event.listen(Engine, "before_cursor_execute", noted.note)
    yield noted
    event.remove(Engine, "before_cursor_execute", noted.note)


@pytest.mark.thorough
@pytest.mark.parametrize("name", READS)
def test_a_read_is_one_statement(backend: SqlBackend, statements: Statements, name: str) -> None:
    with backend.read_session() as storage:
        READS[name](storage)
    assert len(statements.sent) == 1


@pytest.mark.thorough
@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_one_statement(backend: SqlBackend, statements: Statements, name: str) -> None:
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        WRITES[name](storage)
    assert len(statements.sent) == 1


@pytest.mark.parametrize("name", [*READS, *WRITES, *INDEXED])
def test_no_table_is_read_from_end_to_end(backend: SqlBackend, statements: Statements, name: str) -> None:
    call = {**READS, **WRITES, **INDEXED}[name]
    transactions = ContractTransactionManager()
    transactions.begin()
    storage = backend.join_transaction(transactions)
    call(storage)
    connection = storage.connection.core  # type: ignore[attr-defined]
    if connection.dialect.name == "postgresql":
        # Tables are tiny here: without this the planner reads them whole, and rightly so.
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        plans = [_plan(connection, "EXPLAIN", *sent) for sent in statements.sent]
        scans = [line for plan in plans for line in plan if "Seq Scan" in line]
    else:
        plans = [_plan(connection, "EXPLAIN QUERY PLAN", *sent) for sent in statements.sent]
        scans = [line for plan in plans for line in plan if re.match(r"SCAN \w+(?! USING)( |$)", line)]
        # Subqueries are read whole, and rightly so.
        scans = [line for line in scans if "USING" not in line and "CONSTANT" not in line and "anon_" not in line]
    transactions.abort()
    assert plans
    assert scans == [], "\n".join(line for plan in plans for line in plan)


def test_every_reference_can_be_followed_backwards() -> None:
    """Deleting a row looks for those that refer to it: without an index that reads whole tables."""
    for table in metadata.tables.values():
        leading = {next(iter(rule.columns)).name for rule in (*table.indexes, *_keys(table))}
        for key in table.foreign_keys:
            assert key.parent.name in leading, f"{table.name}.{key.parent.name}"


def _keys(table: Table) -> Iterator[PrimaryKeyConstraint | UniqueConstraint]:
    for rule in table.constraints:
        if isinstance(rule, (PrimaryKeyConstraint, UniqueConstraint)):
            yield rule


def _plan(connection: Any, explain: str, statement: str, parameters: Any) -> list[str]:
    return [str(row[-1]) for row in connection.exec_driver_sql(f"{explain} {statement}", parameters)]
