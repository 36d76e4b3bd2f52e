"""The reference backend passes the contract."""

import pytest

from identity.storage.contract import StorageContract
from identity.storage.contract import factories as make
from identity.storage.contract.transaction_manager import ContractTransactionManager
from identity.storage.errors import StorageError, StorageUnavailable
from identity.storage.memory import MemoryBackend
from identity.storage.memory.tables import MemoryTables


class TestMemory(StorageContract):
    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return MemoryBackend()


def test_writer_times_out_behind_a_stuck_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("identity.storage.memory.backend.WRITE_LOCK_TIMEOUT", 0.01)
    backend, first, second = MemoryBackend(), ContractTransactionManager(), ContractTransactionManager()
    first.begin()
    backend.join_transaction(first)
    second.begin()
    with pytest.raises(StorageUnavailable):
        backend.join_transaction(second)
    first.abort()
    backend.join_transaction(second)
    second.abort()


def test_failed_join_lets_the_next_writer_in() -> None:
    backend, transactions = MemoryBackend(), ContractTransactionManager()
    finished = transactions.begin()
    transactions.commit()

    class Manager:
        def get(self) -> object:
            return finished

    with pytest.raises(ValueError, match="Committed"):
        backend.join_transaction(Manager())
    transactions.begin()
    backend.join_transaction(transactions).organizations.add(make.organization())
    transactions.commit()


@pytest.mark.parametrize("step", ["begin_write", "state"])
def test_failure_at_begin_or_end_lets_the_next_writer_in(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    monkeypatch.setattr("identity.storage.memory.backend.WRITE_LOCK_TIMEOUT", 0.01)
    backend, transactions = MemoryBackend(), ContractTransactionManager()

    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    def write() -> None:
        transactions.begin()
        backend.join_transaction(transactions).organizations.add(make.organization())
        transactions.commit()

    with monkeypatch.context() as broken:
        broken.setattr(
            *((MemoryBackend, "begin_write", fail) if step == "begin_write" else (MemoryTables, "state", fail))
        )
        with pytest.raises(MemoryError):
            write()
        transactions.abort()
    write()


def test_storage_refuses_writes_after_its_transaction() -> None:
    backend, transactions = MemoryBackend(), ContractTransactionManager()
    transactions.begin()
    storage = backend.join_transaction(transactions)
    transactions.commit()
    with pytest.raises(StorageError):
        storage.organizations.add(make.organization())
