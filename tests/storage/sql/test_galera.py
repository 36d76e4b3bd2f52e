"""Three MariaDB servers as one database (Galera): each accepts writes, and conflicting writes to a row are refused."""

import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest

from identity.domain.permissions import INSTANCE_KEY
from identity.domain.records import Record
from identity.domain.tokens import TokenFamily
from identity.plugins.sql import SqlBackend, SqlPluginSettings
from identity.storage.backend import Storage
from identity.storage.contract import factories as make
from identity.storage.contract.factories import NOW
from identity.storage.contract.harness import add
from identity.storage.contract.race_runner import AttemptOutcome, RaceResult
from identity.storage.contract.race_runner import _run_attempt as attempted
from identity.storage.contract.races import delete_unless_last_manager, redeem_one_of, rotate_one_of
from identity.storage.contract.transaction_manager import ContractTransactionManager, committed_transaction
from identity.storage.errors import AlreadyUsed, RowNotFound, StorageError

pytest.importorskip("pymysql")

from identity.testing.mariadb import REQUIRED_VARIABLE, require_program
from tests.galera import NODE_COUNT, GaleraCluster, missing_requirement, running_cluster

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def cluster() -> Iterator[GaleraCluster]:
    require_program("mariadbd")
    require_program("rsync")
    if missing_requirement() is not None:
        reason = f"MariaDB is not installed: {missing_requirement()}"
        if os.environ.get(REQUIRED_VARIABLE) == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    with running_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def backends(cluster: GaleraCluster) -> Iterator[list[SqlBackend]]:
    """A backend for each node of the same database."""
    backends = [SqlBackend(SqlPluginSettings(url=url)) for url in cluster.new_database()]
    backends[0].migrate()
    for node, backend in zip(cluster.nodes, backends, strict=True):
        # Waits until the node has caught up: connecting does not.
        node.execute("SELECT 1 FROM information_schema.tables")
        backend.check()
    yield backends
    for backend in backends:
        backend.close()


@pytest.fixture
def family(backends: list[SqlBackend]) -> TokenFamily:
    organization = make.organization()
    project, user = make.project(organization), make.human_user(organization)
    application = make.application(project)
    family = make.token_family(user, application)
    save(backends[0], organization, project, application, user, family)
    return family


def save(backend: SqlBackend, *values: object) -> None:
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        for value in values:
            add(storage, value)


def race(backends: list[SqlBackend], attempt: Callable[[Storage, int], object], times: int) -> RaceResult:
    """Run the attempt this many times at the same moment, in turn on each node."""
    together, transactions = threading.Barrier(times), ContractTransactionManager()

    def run(number: int) -> AttemptOutcome:
        together.wait(60)
        return attempted(backends[number % NODE_COUNT], transactions, attempt, number)

    with ThreadPoolExecutor(times) as pool:
        return RaceResult(tuple(pool.map(run, range(times))))


def test_code_use_on_all_nodes_succeeds_once(backends: list[SqlBackend], family: TokenFamily) -> None:
    for _ in range(4):
        code = make.authorization_code(family)
        save(backends[1], code)
        brought = [make.refresh_token(family) for _ in range(30)]
        attempt = partial(redeem_one_of, codes=[code], brought=brought)
        outcomes = race(backends, attempt, 30)
        assert len(outcomes.committed) == 1
        assert set(outcomes.errors) <= {"AlreadyUsed", "TransactionConflict"}
        for backend in backends:
            with pytest.raises(AlreadyUsed), committed_transaction(backend, ContractTransactionManager()) as storage:
                storage.tokens.redeem_authorization_code(code.digest, client_id=code.client_id, redeemed_at=NOW)


def test_refresh_token_use_on_all_nodes_succeeds_once(backends: list[SqlBackend], family: TokenFamily) -> None:
    for _ in range(4):
        token, successors = make.refresh_token(family), [make.refresh_token(family) for _ in range(30)]
        save(backends[2], token)
        outcomes = race(backends, partial(rotate_one_of, tokens=[token], successors=successors), 30)
        assert len(outcomes.committed) == 1
        assert set(outcomes.errors) <= {"AlreadyUsed", "TransactionConflict"}
        for backend in backends:
            with backend.read_session() as storage:
                refresh_tokens = [
                    refresh_token
                    for refresh_token in successors
                    if storage.tokens.find_refresh_token(refresh_token.digest) is not None
                ]
            assert refresh_tokens == [successors[outcomes.committed[0].number]], (
                "the winner's successor alone is stored"
            )


def test_concurrent_removals_on_nodes_keep_last_owner(backends: list[SqlBackend]) -> None:
    for _ in range(6):
        organization = make.organization()
        people = [make.human_user(organization) for _ in range(NODE_COUNT)]
        managers = [make.manager(person) for person in people]
        save(backends[0], organization, *people, *managers)
        outcomes = race(backends, partial(delete_unless_last_manager, managers=managers), NODE_COUNT)
        assert set(outcomes.errors) <= {"TransactionConflict"}
        with committed_transaction(backends[1], ContractTransactionManager()) as storage:
            holders = storage.managers.lock_by_role(INSTANCE_KEY, "IAM_OWNER")
            assert len(holders) >= 1
            for holder in holders:
                storage.managers.delete(holder.id)


def test_forbidden_operation_is_refused_on_every_node(backends: list[SqlBackend]) -> None:
    """One node locks a record for operations that it forbids, while another node changes it."""
    for _ in range(6):
        record, other = make.record(value={}), make.record()
        save(backends[0], record, other)
        outcomes = race(backends, partial(drop_unless_forbidden, record=record, other=other), NODE_COUNT)
        assert set(outcomes.errors) <= {"TransactionConflict", "RowNotFound", "StaleRow"}
        with backends[1].read_session() as storage:
            stored = storage.records.find(record.plugin, record.kind, record.key)
            is_there = storage.records.find(other.plugin, other.kind, other.key) is not None
            assert stored is not None
            assert is_there or not stored.value, "it was forbidden and done all the same"


def drop_unless_forbidden(storage: Storage, number: int, *, record: Record, other: Record) -> None:
    """Every third attempt forbids deleting the record, if it exists; the others delete it unless that is forbidden."""
    found = storage.records.find(record.plugin, record.kind, record.key, locked=number % 3 != 2)
    assert found is not None
    if number % 3 == 2:
        storage.records.replace(replace(found, value={"forbids": True}, version=found.version + 1))
        if storage.records.find(other.plugin, other.kind, other.key) is None:
            raise RowNotFound
    elif not found.value:
        storage.records.delete(other.plugin, other.kind, other.key)


class WriteLoad:
    """Writes on each node until stopped. ``acknowledged`` has the ids of committed rows."""

    def __init__(self, backends: list[SqlBackend]) -> None:
        self.acknowledged: list[list[str]] = [[] for _ in backends]
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=item) for item in enumerate(backends)]
        for thread in self._threads:
            thread.start()

    def _write(self, at: int, backend: SqlBackend) -> None:
        while not self._over.is_set():
            organization = make.organization()
            try:
                save(backend, organization)
            except StorageError:
                time.sleep(0.05)
            else:
                self.acknowledged[at].append(organization.id)

    def wait_for_more(self, *nodes: int) -> None:
        """Return when each of these nodes has acknowledged ten more writes."""
        expected = {at: len(self.acknowledged[at]) + 10 for at in nodes}
        give_up_at = time.monotonic() + 120
        while any(len(self.acknowledged[at]) < number for at, number in expected.items()):
            assert time.monotonic() < give_up_at, "nothing is taken any more"
            time.sleep(0.05)

    def end(self) -> set[str]:
        self._over.set()
        for thread in self._threads:
            thread.join()
        return {item for of_node in self.acknowledged for item in of_node}


# PyMySQL does not close a socket whose peer is gone.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_acknowledged_writes_survive_node_failures(cluster: GaleraCluster, backends: list[SqlBackend]) -> None:
    load = WriteLoad(backends)
    try:
        load.wait_for_more(0, 1, 2)
        cluster.suspend_node(2)
        cluster.wait_for_size(2)
        load.wait_for_more(0, 1)
        cluster.resume_node(2)
        cluster.wait_for_size(3)
        load.wait_for_more(0, 1, 2)
        with backends[2].read_session() as storage:
            known = {item for of_node in load.acknowledged for item in list(of_node)}
            assert set(storage.organizations.find_many(known)) == known, "what it missed it was sent"
        cluster.nodes[2].kill()
        cluster.wait_for_size(2)
        load.wait_for_more(0, 1)
    finally:
        acknowledged = load.end()
    for backend in backends[:2]:
        with backend.read_session() as storage:
            assert set(storage.organizations.find_many(acknowledged)) == acknowledged
    del load
    gc.collect()
