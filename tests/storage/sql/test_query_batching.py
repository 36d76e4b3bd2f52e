"""Greenlets share statements on PostgreSQL (identity/plugins/sql/query_batching.py); each gets its own results."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import psycopg
import pytest

from identity.domain.records import Record
from identity.domain.tokens import AccessToken, RefreshToken, TokenFamily
from identity.plugins.sql import SqlBackend, SqlPluginSettings, query_batching
from identity.plugins.sql.connection import DatabaseConnection
from identity.plugins.sql.storage import SqlStorage
from identity.storage.backend import Storage
from identity.storage.contract import factories as make
from identity.storage.contract.factories import NOW, make_digest
from identity.storage.contract.harness import add
from identity.storage.contract.race_runner import run_in_greenlets
from identity.storage.contract.transaction_manager import ContractTransactionManager, committed_transaction
from identity.storage.errors import StorageError, StorageUnavailable
from tests.storage.sql.greenlet_barrier import GreenletBarrier

ORGANIZATION = make.organization()
PROJECT = make.project(ORGANIZATION)
ROBOT, OTHER = make.service_user(ORGANIZATION), make.service_user(ORGANIZATION)
KEY = make.service_user_key(ROBOT)
APPLICATIONS = [make.application(PROJECT) for _ in range(3)]
TOKENS = [make.access_token(ROBOT, digest=make_digest()) for _ in range(query_batching.MAX_BATCH_SIZE + 2)]

Ask = Callable[[Storage], object]


class BatchingScenario:
    """Greenlets that query, their results, and the statements that the server received."""

    def __init__(self, backend: SqlBackend, transactions: ContractTransactionManager) -> None:
        self._backend = backend
        self._transactions = transactions
        self.sent: list[str] = []
        self.results: list[object] = []
        #: The number of the greenlet that executes the batch.
        self.first = -1

    def ask(self, *asks: Ask, of_first: Callable[[DatabaseConnection], object] = lambda _connection: None) -> None:
        """Run each ask in its own greenlet; ``of_first`` gets the connection that executes the batch."""
        self.sent, self.results = [], [None] * len(asks)
        barrier = GreenletBarrier(len(asks))
        works = [self._asking(number, ask, barrier, of_first) for number, ask in enumerate(asks)]
        run_in_greenlets(works)

    def _asking(
        self, number: int, ask: Ask, barrier: GreenletBarrier, of_first: Callable[[DatabaseConnection], object]
    ) -> Callable[[], None]:
        def asks() -> None:
            try:
                with self._backend.read_session() as storage:
                    assert isinstance(storage, SqlStorage)
                    execute = storage.connection.execute
                    if barrier.wait():
                        self.first = number
                        of_first(storage.connection)
                    self._listen(storage.connection)
                    self.results[number] = ask(storage)
                    storage.connection.execute = execute
            except StorageUnavailable as error:
                self.results[number] = type(error).__name__

        return asks

    def _listen(self, connection: DatabaseConnection) -> None:
        execute = connection.execute

        def heard(statement: str, *parameters: object) -> object:
            self.sent.append(statement)
            return execute(statement, *parameters)

        connection.execute = heard


@pytest.fixture
def backend(postgresql_url: str) -> Iterator[SqlBackend]:
    backend = SqlBackend(SqlPluginSettings(url=postgresql_url, database_connections=40))
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        for value in (ORGANIZATION, PROJECT, ROBOT, OTHER, KEY, *APPLICATIONS, *TOKENS):
            add(storage, value)
        storage.applications.add_secret(APPLICATIONS[0].id, make.client_secret())
        storage.applications.add_secret(APPLICATIONS[0].id, make.client_secret())
    yield backend
    backend.close()


@pytest.fixture
def scene(backend: SqlBackend) -> BatchingScenario:
    return BatchingScenario(backend, ContractTransactionManager())


def token(number: int) -> Ask:
    return lambda storage: getattr(storage.tokens.find_access_token(TOKENS[number].digest), "token", None)


def client(id_: str) -> Ask:
    def ask(storage: Storage) -> object:
        application_client = storage.applications.find_client(id_)
        return application_client and (application_client.application, len(application_client.secrets))

    return ask


def test_ready_readers_share_a_query_and_get_their_own_rows(scene: BatchingScenario) -> None:
    def unknown(storage: Storage) -> object:
        return storage.tokens.find_access_token(make_digest())

    scene.ask(token(0), token(1), unknown, token(1), token(2))
    assert scene.results == [TOKENS[0], TOKENS[1], None, TOKENS[1], TOKENS[2]]
    assert len(scene.sent) == 1


def test_entities_of_different_kinds_are_queried_separately(scene: BatchingScenario) -> None:
    scene.ask(token(0), client(APPLICATIONS[0].id), token(1), client(APPLICATIONS[1].id))
    assert scene.results == [TOKENS[0], (APPLICATIONS[0], 2), TOKENS[1], (APPLICATIONS[1], 0)]
    assert len(scene.sent) == 2


def test_single_reader_queries_like_a_thread(scene: BatchingScenario, backend: SqlBackend) -> None:
    scene.ask(token(0))
    alone = scene.sent
    scene.ask(token(0), token(1))
    assert alone != scene.sent
    with backend.read_session() as storage:
        assert token(0)(storage) == TOKENS[0]
        assert alone[0].endswith("= %(token)s")


def test_oversized_batch_is_split(scene: BatchingScenario) -> None:
    scene.ask(*(token(number) for number in range(len(TOKENS))))
    assert scene.results == TOKENS
    assert len(scene.sent) == 2


def test_key_is_found_only_for_its_service_user(scene: BatchingScenario) -> None:
    def signer(user_id: str) -> Ask:
        return lambda storage: (found := storage.credentials.find_key_with_subject(KEY.id, user_id)) and found[0]

    scene.ask(signer(ROBOT.id), signer(OTHER.id), signer(ROBOT.id))
    assert scene.results == [KEY, None, KEY]
    assert len(scene.sent) == 1


@pytest.mark.parametrize("bad", ["nul\0", "lone \ud800"])
def test_invalid_parameter_does_not_fail_the_batch(scene: BatchingScenario, bad: str) -> None:
    for asks in ((bad, APPLICATIONS[0].id), (APPLICATIONS[0].id, bad)):
        scene.ask(*map(client, asks))
        assert scene.results == [None if ask == bad else (APPLICATIONS[0], 2) for ask in asks]


def test_snapshot_queries_are_not_batched(backend: SqlBackend) -> None:
    """A snapshot sees only what was committed before it began."""
    barrier, transactions = GreenletBarrier(3), ContractTransactionManager()

    def look(storage: Storage) -> object:
        barrier.wait()
        return token(0)(storage)

    def before() -> object:
        with backend.snapshot() as storage:
            with committed_transaction(backend, transactions) as other_transaction:
                other_transaction.tokens.revoke_access_token(TOKENS[0].digest, NOW)
            return look(storage)

    def after() -> object:
        with backend.read_session() as storage:
            return look(storage)

    revoked = replace(TOKENS[0], revoked_at=NOW)
    assert run_in_greenlets([after, before, after]) == [revoked, TOKENS[0], revoked]


def test_lost_connection_fails_only_its_reader(scene: BatchingScenario, postgresql_url: str) -> None:
    def lose(connection: DatabaseConnection) -> None:
        with psycopg.connect(postgresql_url.replace("+psycopg", ""), autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", (connection.driver.info.backend_pid,))

    scene.ask(token(0), token(1), token(2), of_first=lose)
    assert scene.results == ["StorageUnavailable" if number == scene.first else TOKENS[number] for number in range(3)]


def test_batch_timeouts_are_raised_at_once(scene: BatchingScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """A silent server would let each of them time out again."""
    monkeypatch.setattr(query_batching, "_SLOW_QUERY_SECONDS", -1.0)

    def silence(connection: DatabaseConnection) -> None:
        def silent(*_: object) -> None:
            raise psycopg.OperationalError("the server is silent")

        connection.execute = silent

    scene.ask(token(0), token(1), token(2), of_first=silence)
    assert scene.results == ["StorageUnavailable"] * 3
    assert len(scene.sent) == 1


def test_sessions_of_browsers_are_found_by_one_statement(scene: BatchingScenario, backend: SqlBackend) -> None:
    person = make.human_user(ORGANIZATION)
    sessions = [make.session(person) for _ in range(3)]
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        for value in (person, *sessions):
            add(storage, value)

    def browser(digest: bytes) -> Ask:
        return lambda storage: [account.session for account in storage.sessions.list_for_browser([digest])]

    scene.ask(*(browser(session.digest) for session in sessions), browser(make_digest()))
    assert scene.results == [*([session] for session in sessions), []]
    assert len(scene.sent) == 1


def test_audiences_are_found_by_one_statement(scene: BatchingScenario) -> None:
    def audience(project_id: str, organization_id: str) -> Ask:
        return lambda storage: storage.projects.list_audience(frozenset({project_id}), organization_id, NOW)

    own_audience, foreign = audience(PROJECT.id, ORGANIZATION.id), audience(PROJECT.id, "another")
    scene.ask(own_audience, foreign, audience("unknown", ORGANIZATION.id), own_audience)
    assert scene.results == [{PROJECT.id}, set(), set(), {PROJECT.id}]
    assert len(scene.sent) == 1


def test_several_sessions_of_each_browser_are_found_by_one_statement(
    scene: BatchingScenario, backend: SqlBackend
) -> None:
    person = make.human_user(ORGANIZATION)
    sessions = [make.session(person) for _ in range(5)]
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        for value in (person, *sessions):
            add(storage, value)

    def browser(*numbers: int) -> Ask:
        digests = [sessions[number].digest for number in numbers]
        return lambda storage: {account.session.id for account in storage.sessions.list_for_browser(digests)}

    unknown: Ask = lambda storage: storage.sessions.list_for_browser([make_digest(), make_digest()])  # noqa: E731
    browsers = ((0, 1), (1, 2, 3), (4, 0))
    scene.ask(*(browser(*numbers) for numbers in browsers), unknown)
    assert scene.results == [*({sessions[number].id for number in numbers} for numbers in browsers), ()]
    assert len(scene.sent) == 1


def test_audiences_of_several_projects_are_found_by_one_statement(scene: BatchingScenario, backend: SqlBackend) -> None:
    projects = [make.project(ORGANIZATION) for _ in range(2)]
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        for project in projects:
            add(storage, project)

    def audience(organization_id: str, *project_ids: str) -> Ask:
        return lambda storage: storage.projects.list_audience(frozenset(project_ids), organization_id, NOW)

    ids = [project.id for project in projects]
    scene.ask(
        audience(ORGANIZATION.id, PROJECT.id, *ids),
        audience("another", PROJECT.id, *ids),
        audience(ORGANIZATION.id, ids[0], "unknown"),
    )
    assert scene.results == [{PROJECT.id, *ids}, set(), {ids[0]}]
    assert len(scene.sent) == 1


class Writers:
    """Greenlets that record tokens, each in its own transaction."""

    def __init__(self, backend: SqlBackend) -> None:
        self._backend = backend
        self.sent: list[str] = []

    def write(self, *writes: Callable[[Storage], object], lost: bool = False) -> list[str]:
        """Run the writes at the same time; returns their outcomes. ``lost`` severs the connection of the batch."""
        barrier, ended = GreenletBarrier(len(writes)), [""] * len(writes)

        def do(number: int) -> None:
            try:
                with committed_transaction(self._backend, ContractTransactionManager()) as storage:
                    assert isinstance(storage, SqlStorage)
                    self._listen(storage.connection)
                    if barrier.wait() and lost:
                        sever(storage.connection)
                    writes[number](storage)
            except StorageError as error:
                ended[number] = type(error).__name__
            else:
                ended[number] = "written"

        run_in_greenlets([partial(do, number) for number in range(len(writes))])
        return ended

    def record(self, *tokens: AccessToken, used: Record | None = None, lost: bool = False) -> list[str]:
        """Record tokens at the same time and return the outcomes."""
        return self.write(*(recording(token, used) for token in tokens), lost=lost)

    def stored(self, *tokens: AccessToken | RefreshToken) -> list[bool]:
        with self._backend.read_session() as storage:
            find = (storage.tokens.find_access_token, storage.tokens.find_refresh_token)
            return [find[isinstance(token, RefreshToken)](token.digest) is not None for token in tokens]

    def _listen(self, connection: DatabaseConnection) -> None:
        execute = connection.execute

        def heard(statement: str, *parameters: object) -> object:
            self.sent.append(statement)
            return execute(statement, *parameters)

        connection.execute = heard


def recording(token: AccessToken, used: Record | None = None) -> Callable[[Storage], object]:
    return lambda storage: storage.tokens.add_access_token(
        token, consumed_record=used or make.record(), is_last_write=True
    )


def sever(connection: DatabaseConnection) -> None:
    """Let the server end the connection."""
    with psycopg.connect(
        connection.driver.info.dsn, autocommit=True, password=connection.driver.info.password
    ) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (connection.driver.info.backend_pid,))


@pytest.fixture
def family(backend: SqlBackend) -> TokenFamily:
    person = make.human_user(ORGANIZATION)
    family = make.token_family(person, APPLICATIONS[0])
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        for value in (person, family):
            add(storage, value)
    return family


@pytest.fixture
def writers(backend: SqlBackend) -> Writers:
    return Writers(backend)


def new_tokens(number: int) -> list[AccessToken]:
    return [make.access_token(ROBOT, digest=make_digest()) for _ in range(number)]


def test_ready_writes_share_one_statement(writers: Writers) -> None:
    tokens = new_tokens(query_batching.MAX_BATCH_SIZE)
    writers.record(*tokens)
    assert writers.stored(*tokens) == [True] * query_batching.MAX_BATCH_SIZE
    assert len(writers.sent) == 1


def test_more_writes_than_fit_use_two_statements(writers: Writers) -> None:
    tokens = new_tokens(query_batching.MAX_BATCH_SIZE + 2)
    writers.record(*tokens)
    assert writers.stored(*tokens) == [True] * len(tokens)
    assert len(writers.sent) == 2


@pytest.mark.parametrize("refused", range(3))
def test_refused_write_does_not_affect_the_batch(writers: Writers, refused: int) -> None:
    tokens = new_tokens(3)
    tokens[refused] = make.access_token(user_id=make_digest().hex(), digest=make_digest())
    assert writers.record(*tokens) == ["RowNotFound" if number == refused else "written" for number in range(3)]
    assert writers.stored(*tokens) == [number != refused for number in range(3)]


def test_single_use_in_one_batch_succeeds_once(writers: Writers) -> None:
    tokens = new_tokens(5)
    ended = writers.record(*tokens, used=make.record())
    assert sorted(ended) == ["AlreadyUsed"] * 4 + ["written"]
    assert writers.stored(*tokens) == [item == "written" for item in ended]


def test_twice_used_record_beside_others_is_refused_once(writers: Writers) -> None:
    tokens, used = new_tokens(4), make.record()
    ended = writers.write(
        *(recording(token, used if number in {1, 2} else None) for number, token in enumerate(tokens))
    )
    assert (ended[0], sorted(ended[1:3]), ended[3]) == ("written", ["AlreadyUsed", "written"], "written")
    assert writers.stored(*tokens) == [item == "written" for item in ended]


def test_used_assertion_is_refused_individually(writers: Writers) -> None:
    before, *tokens = new_tokens(4)
    used = make.record()
    assert writers.record(before, used=used) == ["written"]
    writers.sent.clear()
    ended = writers.write(*(recording(token, used if number == 1 else None) for number, token in enumerate(tokens)))
    assert ended == ["written", "AlreadyUsed", "written"]
    assert writers.stored(*tokens) == [True, False, True]
    assert len(writers.sent) == 1, "nothing of it failed"


def test_unrotatable_refresh_token_is_refused_individually(writers: Writers, family: TokenFamily) -> None:
    live = [make.refresh_token(family) for _ in range(3)]
    rotated, expired = make.refresh_token(family, rotated_at=NOW), make.refresh_token(family, expires_at=NOW)
    writers.write(lambda storage: [add(storage, refresh_token) for refresh_token in (*live, rotated, expired)])
    writers.sent.clear()
    presented = [live[0], rotated, live[1], expired, live[2]]
    successors = [make.refresh_token(family) for _ in presented]
    accesses = [make.access_token(ROBOT, None, family, digest=make_digest()) for _ in presented]

    def rotation(number: int) -> Callable[[Storage], object]:
        digest, successor, access = presented[number].digest, successors[number], accesses[number]
        return lambda storage: storage.tokens.rotate_refresh_token(
            digest, successor, NOW, access=access, is_last_write=True
        )

    ended = writers.write(*map(rotation, range(5)))
    assert ended == ["written", "AlreadyUsed", "written", "RowNotFound", "written"]
    assert writers.stored(*accesses) == [item == "written" for item in ended]
    assert writers.stored(*successors) == [item == "written" for item in ended]
    assert sum(statement.startswith("WITH") for statement in writers.sent) == 1


def test_unredeemable_code_is_refused_individually(writers: Writers, family: TokenFamily) -> None:
    live = [make.authorization_code(family) for _ in range(3)]
    redeemed, foreign = make.authorization_code(family, redeemed_at=NOW), make.authorization_code(family)
    writers.write(lambda storage: [add(storage, code) for code in (*live, redeemed, foreign)])
    writers.sent.clear()
    codes = [redeemed, live[0], live[1], foreign, live[2]]
    accesses = [make.access_token(ROBOT, None, family, digest=make_digest()) for _ in codes]

    def redemption(number: int) -> Callable[[Storage], object]:
        code, access = codes[number], accesses[number]
        client_id = "another" if code is foreign else code.client_id

        def redeem(storage: Storage) -> None:
            authorization_code = storage.tokens.redeem_authorization_code(
                code.digest, client_id=client_id, redeemed_at=NOW, access=access, is_last_write=True
            )
            assert authorization_code == replace(code, redeemed_at=NOW), "each is given its own"

        return redeem

    ended = writers.write(*map(redemption, range(5)))
    assert ended == ["AlreadyUsed", "written", "written", "RowNotFound", "written"]
    assert writers.stored(*accesses) == [item == "written" for item in ended]
    assert sum(statement.startswith("WITH") for statement in writers.sent) == 1


def test_unstorable_text_does_not_affect_the_batch(writers: Writers) -> None:
    tokens = [*new_tokens(2), make.access_token(ROBOT, digest=make_digest(), scope=("nul\0",))]
    writers.record(*tokens)
    assert writers.stored(*tokens) == [True, True, False]


def test_batch_fails_completely_on_connection_loss(writers: Writers) -> None:
    """The commit may have happened, so the batch is not retried."""
    tokens = new_tokens(3)
    assert writers.record(*tokens, lost=True) == ["StorageUnavailable"] * 3
    assert writers.stored(*tokens) == [False] * 3
