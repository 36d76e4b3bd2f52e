"""Three MariaDB servers that are one database (Galera): each takes writes, and what meets at one row is refused."""

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
from identity.plugins.sql import Settings, SqlBackend
from identity.storage.backend import Storage
from identity.storage.contract.base import add
from identity.storage.contract.factories import (
    NOW,
    a_code,
    a_family,
    a_human_user,
    a_manager,
    a_project,
    a_record,
    a_refresh_token,
    an_application,
    an_organization,
)
from identity.storage.contract.races import redeem, remove_unless_last, rotate
from identity.storage.contract.racing import Outcome, Outcomes
from identity.storage.contract.racing import _try as attempted
from identity.storage.contract.transactions import Transactions, committing
from identity.storage.errors import AlreadyUsed, Missing, StorageError

pytest.importorskip("pymysql")

from identity.testing.galera import NODES, Cluster, missing, running_cluster
from identity.testing.mariadb import REQUIRED, program

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    program("mariadbd")
    program("rsync")
    if missing() is not None:
        reason = f"MariaDB is not installed: {missing()}"
        if os.environ.get(REQUIRED) == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    with running_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def backends(cluster: Cluster) -> Iterator[list[SqlBackend]]:
    """The same database, once by each node."""
    backends = [SqlBackend(Settings(url=url)) for url in cluster.new_database()]
    backends[0].migrate()
    for node, backend in zip(cluster.nodes, backends, strict=True):
        # It waits until the node has what others have: to connect does not.
        node.execute("SELECT 1 FROM information_schema.tables")
        backend.check()
    yield backends
    for backend in backends:
        backend.close()


@pytest.fixture
def family(backends: list[SqlBackend]) -> TokenFamily:
    organization = an_organization()
    project, user = a_project(organization), a_human_user(organization)
    application = an_application(project)
    family = a_family(user, application)
    save(backends[0], organization, project, application, user, family)
    return family


def save(backend: SqlBackend, *values: object) -> None:
    with committing(backend, Transactions()) as storage:
        for value in values:
            add(storage, value)


def race(backends: list[SqlBackend], attempt: Callable[[Storage, int], object], times: int) -> Outcomes:
    """Make the attempt so often at the same moment, each time by another node than the time before."""
    together, transactions = threading.Barrier(times), Transactions()

    def run(number: int) -> Outcome:
        together.wait(60)
        return attempted(backends[number % NODES], transactions, attempt, number)

    with ThreadPoolExecutor(times) as pool:
        return Outcomes(tuple(pool.map(run, range(times))))


def test_of_uses_of_a_code_at_all_nodes_one_wins(backends: list[SqlBackend], family: TokenFamily) -> None:
    for _ in range(4):
        code = a_code(family)
        save(backends[1], code)
        brought = [a_refresh_token(family) for _ in range(30)]
        attempt = partial(redeem, digest=code.digest, client_id=code.client_id, brought=brought, at=NOW)
        outcomes = race(backends, attempt, 30)
        assert len(outcomes.won) == 1
        assert set(outcomes.errors) <= {"AlreadyUsed", "Contended"}
        for backend in backends:
            with pytest.raises(AlreadyUsed), committing(backend, Transactions()) as storage:
                storage.tokens.redeem_code(code.digest, client_id=code.client_id, at=NOW)


def test_of_uses_of_a_refresh_token_at_all_nodes_one_wins(backends: list[SqlBackend], family: TokenFamily) -> None:
    for _ in range(4):
        token, successors = a_refresh_token(family), [a_refresh_token(family) for _ in range(30)]
        save(backends[2], token)
        outcomes = race(backends, partial(rotate, digest=token.digest, successors=successors, at=NOW), 30)
        assert len(outcomes.won) == 1
        assert set(outcomes.errors) <= {"AlreadyUsed", "Contended"}
        for backend in backends:
            with backend.reading() as storage:
                found = [one for one in successors if storage.tokens.find_presented(one.digest) is not None]
            assert found == [successors[outcomes.won[0].number]], "the winner's successor alone is stored"


def test_the_last_owner_stays_though_each_node_removes_another_one(backends: list[SqlBackend]) -> None:
    for _ in range(6):
        organization = an_organization()
        people = [a_human_user(organization) for _ in range(NODES)]
        managers = [a_manager(person) for person in people]
        save(backends[0], organization, *people, *managers)
        outcomes = race(backends, partial(remove_unless_last, managers=managers), NODES)
        assert set(outcomes.errors) <= {"Contended"}
        with committing(backends[1], Transactions()) as storage:
            holders = storage.managers.lock_holders(INSTANCE_KEY, "IAM_OWNER")
            assert len(holders) >= 1
            for holder in holders:
                storage.managers.remove(holder.id)


def test_what_is_forbidden_at_one_node_is_not_done_at_another(backends: list[SqlBackend]) -> None:
    """A record is locked by those whom it forbids something, and changed by who forbids it, each at another node."""
    for _ in range(6):
        record, thing = a_record(value={}), a_record()
        save(backends[0], record, thing)
        outcomes = race(backends, partial(drop_unless_forbidden, record=record, thing=thing), NODES)
        assert set(outcomes.errors) <= {"Contended", "Missing", "Stale"}
        with backends[1].reading() as storage:
            stored = storage.records.find(record.plugin, record.kind, record.key)
            is_there = storage.records.find(thing.plugin, thing.kind, thing.key) is not None
            assert stored is not None
            assert is_there or not stored.value, "it was forbidden and done all the same"


def drop_unless_forbidden(storage: Storage, number: int, *, record: Record, thing: Record) -> None:
    """Every third one forbids that the thing is dropped, if it is there; others drop it unless that is forbidden."""
    found = storage.records.find(record.plugin, record.kind, record.key, locked=number % 3 != 2)
    assert found is not None
    if number % 3 == 2:
        storage.records.replace(replace(found, value={"forbids": True}, version=found.version + 1))
        if storage.records.find(thing.plugin, thing.kind, thing.key) is None:
            raise Missing
    elif not found.value:
        storage.records.drop(thing.plugin, thing.kind, thing.key)


class Load:
    """Writes at each node until it is told to end. ``acknowledged`` are the ids of what was committed."""

    def __init__(self, backends: list[SqlBackend]) -> None:
        self.acknowledged: list[list[str]] = [[] for _ in backends]
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=one) for one in enumerate(backends)]
        for thread in self._threads:
            thread.start()

    def _write(self, at: int, backend: SqlBackend) -> None:
        while not self._over.is_set():
            organization = an_organization()
            try:
                save(backend, organization)
            except StorageError:
                time.sleep(0.05)
            else:
                self.acknowledged[at].append(organization.id)

    def wait_for_more(self, *nodes: int) -> None:
        """Return when each of these nodes has taken ten more."""
        wanted = {at: len(self.acknowledged[at]) + 10 for at in nodes}
        give_up_at = time.monotonic() + 120
        while any(len(self.acknowledged[at]) < number for at, number in wanted.items()):
            assert time.monotonic() < give_up_at, "nothing is taken any more"
            time.sleep(0.05)

    def end(self) -> set[str]:
        self._over.set()
        for thread in self._threads:
            thread.join()
        return {one for of_node in self.acknowledged for one in of_node}


# PyMySQL leaves it to Python to close a socket at which nobody listens.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_nothing_that_was_acknowledged_is_lost_when_nodes_fall_silent_and_die(
    cluster: Cluster, backends: list[SqlBackend]
) -> None:
    load = Load(backends)
    try:
        load.wait_for_more(0, 1, 2)
        cluster.freeze(2)
        cluster.wait_for(2)
        load.wait_for_more(0, 1)
        cluster.thaw(2)
        cluster.wait_for(3)
        load.wait_for_more(0, 1, 2)
        with backends[2].reading() as storage:
            known = {one for of_node in load.acknowledged for one in list(of_node)}
            assert set(storage.organizations.find_many(known)) == known, "what it missed it was sent"
        cluster.nodes[2].kill()
        cluster.wait_for(2)
        load.wait_for_more(0, 1)
    finally:
        acknowledged = load.end()
    for backend in backends[:2]:
        with backend.reading() as storage:
            assert set(storage.organizations.find_many(acknowledged)) == acknowledged
    del load
    gc.collect()
