"""Writers in greenlets share commits on SQLite (identity/plugins/sql/group_commit.py); no write is lost or partial."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from identity.concurrency import sleep
from identity.plugins.sql import SqlBackend, SqlPluginSettings
from identity.plugins.sql.group_commit import MAX_GROUP_SIZE
from identity.plugins.sql.storage import SqlStorage
from identity.storage.backend import Storage
from identity.storage.contract import factories as make
from identity.storage.contract.race_runner import run_in_greenlets
from identity.storage.contract.transaction_manager import ContractTransactionManager, committed_transaction
from identity.storage.errors import DuplicateValue


@pytest.fixture
def backend(sqlite_url: str) -> Iterator[SqlBackend]:
    backend = SqlBackend(SqlPluginSettings(url=sqlite_url, busy_timeout=timedelta(seconds=2)))
    yield backend
    backend.close()


class CommitLedger:
    """Writers and their outcomes; ``log`` has the events in order."""

    def __init__(self, backend: SqlBackend, transactions: ContractTransactionManager) -> None:
        self.backend = backend
        self.transactions = transactions
        self.log: list[str] = []
        self.outcomes: dict[str, str] = {}

    def writer(self, name: str, then: Callable[[Storage], object] = lambda _: None) -> Callable[[], None]:
        """Adds an organization with this name, does something else in the same transaction, and logs the outcome."""

        def write() -> None:
            try:
                with committed_transaction(self.backend, self.transactions) as storage:
                    assert isinstance(storage, SqlStorage)
                    storage.connection.driver.set_trace_callback(self._heard)
                    storage.organizations.add(make.organization(name=name))
                    self.log.append(f"{name} wrote")
                    then(storage)
            except Exception as error:
                self.outcomes[name] = type(error).__name__
            else:
                self.outcomes[name] = "committed"
            self.log.append(f"{name} was told")

        return write

    def run(self, *works: Callable[[], None]) -> None:
        run_in_greenlets(works)

    @property
    def stored(self) -> set[str]:
        with self.backend.read_session() as storage:
            return {organization.name for organization in storage.organizations.page().items}

    @property
    def commits(self) -> int:
        return self.log.count("COMMIT")

    def _heard(self, statement: str) -> None:
        if statement in ("COMMIT", "ROLLBACK"):
            self.log.append(statement)


@pytest.fixture
def ledger(backend: SqlBackend, transactions: ContractTransactionManager) -> CommitLedger:
    return CommitLedger(backend, transactions)


def failing_commit(storage: Storage) -> None:
    """From now on every commit on this connection fails, as on a full disk."""
    assert isinstance(storage, SqlStorage)

    def refuse(action: int, argument: str | None, *_: object) -> int:
        refused = action == sqlite3.SQLITE_TRANSACTION and argument == "COMMIT"
        return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK

    storage.connection.driver.set_authorizer(refuse)


def refused(_: Storage) -> None:
    raise DuplicateValue("name")


def test_ready_writers_share_a_commit(ledger: CommitLedger) -> None:
    names = [f"org {number}" for number in range(5)]
    ledger.run(*map(ledger.writer, names))
    assert ledger.log == [*(f"{name} wrote" for name in names), "COMMIT", *(f"{name} was told" for name in names)]
    assert ledger.outcomes == dict.fromkeys(names, "committed")
    assert ledger.stored == set(names)


def test_reads_before_the_first_write_take_no_lock(ledger: CommitLedger, backend: SqlBackend) -> None:
    """All writers read before the first one takes the lock."""

    def looks_first(name: str) -> None:
        with backend.read_session() as storage:
            storage.organizations.find_instance()
        ledger.log.append(f"{name} looked")
        ledger.writer(name)()

    ledger.run(*(partial(looks_first, name) for name in "abc"))
    assert ledger.log[:6] == ["a looked", "b looked", "c looked", "a wrote", "b wrote", "c wrote"]
    assert ledger.commits == 1


@pytest.mark.parametrize("writer", range(4))
def test_refusal_rolls_back_only_its_own_writes(ledger: CommitLedger, writer: int) -> None:
    names = [f"org {number}" for number in range(4)]
    ledger.run(
        *(ledger.writer(name, refused if number == writer else lambda _: None) for number, name in enumerate(names))
    )
    assert ledger.stored == set(names) - {names[writer]}
    assert ledger.outcomes == {**dict.fromkeys(names, "committed"), names[writer]: "DuplicateValue"}


def test_group_of_refused_writers_commits_nothing(ledger: CommitLedger) -> None:
    ledger.run(*(ledger.writer(name, refused) for name in "abc"))
    assert ledger.stored == set()
    assert set(ledger.outcomes.values()) == {"DuplicateValue"}
    ledger.run(ledger.writer("d"))
    assert ledger.stored == {"d"}


def test_failed_group_commit_fails_all_and_leaves_no_trace(ledger: CommitLedger) -> None:
    ledger.run(ledger.writer("a"), ledger.writer("b", failing_commit), ledger.writer("c"))
    assert ledger.outcomes == dict.fromkeys("abc", "StorageUnavailable")
    assert ledger.stored == set()


def test_writers_continue_after_a_failed_commit(ledger: CommitLedger) -> None:
    def writes_again(name: str) -> None:
        ledger.writer(name, failing_commit)()
        with committed_transaction(ledger.backend, ledger.transactions) as storage:
            assert isinstance(storage, SqlStorage)
            storage.connection.driver.set_authorizer(None)
            storage.organizations.add(make.organization(name=f"{name} again"))

    ledger.run(*(partial(writes_again, name) for name in "ab"))
    assert ledger.stored == {"a again", "b again"}


def test_refusal_based_on_uncommitted_writes_waits_for_commit(ledger: CommitLedger) -> None:
    """Otherwise a client would learn that a code was used although that use was rolled back."""
    ledger.run(ledger.writer("a", failing_commit), ledger.writer("b", refused))
    assert ledger.outcomes == {"a": "StorageUnavailable", "b": "StorageUnavailable"}
    assert ledger.log.index("b was told") > ledger.log.index("ROLLBACK")


def test_others_see_nothing_before_the_commit(ledger: CommitLedger, sqlite_url: str) -> None:
    other_backend = SqlBackend(SqlPluginSettings(url=sqlite_url))
    counts: list[int] = []

    def looks(_: Storage) -> None:
        for backend in (ledger.backend, other_backend):
            with backend.read_session() as storage:
                counts.append(len(storage.organizations.page().items))

    ledger.run(*(ledger.writer(name, looks) for name in "abc"))
    assert counts == [0] * 6
    assert len(ledger.stored) == 3
    other_backend.close()


def test_database_that_rolls_back_by_itself_fails_all_of_them(ledger: CommitLedger) -> None:
    def as_after_a_full_disk(storage: Storage) -> None:
        assert isinstance(storage, SqlStorage)
        storage.connection.driver.execute("ROLLBACK")

    ledger.run(ledger.writer("a"), ledger.writer("b", as_after_a_full_disk), ledger.writer("c"))
    assert ledger.outcomes == {"a": "StorageUnavailable", "b": "StorageUnavailable", "c": "committed"}
    assert ledger.stored == {"c"}


def test_group_commit_size_is_limited(ledger: CommitLedger) -> None:
    ledger.run(*(ledger.writer(f"org {number}") for number in range(MAX_GROUP_SIZE + 10)))
    assert ledger.commits == 2
    assert set(ledger.outcomes.values()) == {"committed"}


def test_slow_writer_does_not_delay_the_commit(ledger: CommitLedger) -> None:
    """Open writes are committed when its turn starts; later ones wait for it, and other greenlets continue."""
    may_end, has_begun = threading.Event(), threading.Event()

    def long(_: Storage) -> None:
        has_begun.set()
        may_end.wait(5)

    def lets_it_begin(_: Storage) -> None:
        thread.start()
        # Until it is queued.
        while not ledger.backend._open_pools().writer.pool._waiters:
            threading.Event().wait(0.001)

    def after_a_while() -> None:
        while not has_begun.is_set():
            sleep(0.001)
        while "a was told" not in ledger.log:
            sleep(0.001)
        may_end.set()
        ledger.writer("late")()

    thread = threading.Thread(target=ledger.writer("long", long))
    ledger.run(ledger.writer("a", lets_it_begin), ledger.writer("b"), after_a_while)
    thread.join(5)
    assert ledger.outcomes == dict.fromkeys(["a", "b", "long", "late"], "committed")
    assert ledger.log.index("a was told") < ledger.log.index("long was told")


def test_write_lock_of_another_process_is_awaited(ledger: CommitLedger, sqlite_url: str) -> None:
    connection = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")

    def lets_go() -> None:
        sleep(0.05)
        ledger.log.append("let go")
        connection.execute("ROLLBACK")

    ledger.run(ledger.writer("a"), ledger.writer("b"), lets_go)
    assert ledger.log[0] == "let go"
    assert ledger.stored == {"a", "b"}
    connection.close()


def test_sharing_can_be_turned_off(sqlite_url: str, transactions: ContractTransactionManager) -> None:
    backend = SqlBackend(SqlPluginSettings(url=sqlite_url, share_commits=False))
    ledger = CommitLedger(backend, transactions)
    ledger.run(*map(ledger.writer, "abc"))
    assert ledger.commits == 3
    assert ledger.stored == set("abc")
    backend.close()


def test_greenlet_read_connections_close_with_the_backend(ledger: CommitLedger) -> None:
    connections: list[Any] = []

    def reads() -> None:
        with ledger.backend.read_session() as storage:
            assert isinstance(storage, SqlStorage)
            connections.append(storage.connection)

    ledger.run(reads, reads)
    assert connections[0] is connections[1]
    ledger.backend.close()
    assert connections[0].core.closed


def test_slow_commit_leaves_the_loop_to_others(ledger: CommitLedger) -> None:
    """After a slow commit, a thread runs the next one, which still commits for all."""
    threads: list[int] = []

    def slow_commit(storage: Storage) -> None:
        assert isinstance(storage, SqlStorage)

        def heard(statement: str) -> None:
            if statement == "COMMIT":
                threads.append(threading.get_ident())
                time.sleep(0.02)

        storage.connection.driver.set_trace_callback(heard)

    def ticks() -> None:
        for _ in range(20):
            ledger.log.append("tick")
            sleep(0.002)

    for names in ("ab", "cd"):
        ledger.log = []
        ledger.run(*(ledger.writer(name, slow_commit) for name in names), ticks)
    assert threads[0] == threading.get_ident() != threads[1]
    assert ledger.log.index("c was told") > 3
    assert ledger.log[: ledger.log.index("c was told")].count("tick") > 3
    assert ledger.stored == set("abcd")
    ledger.run(ledger.writer("e", slow_commit))
    assert set(ledger.outcomes.values()) == {"committed"}
