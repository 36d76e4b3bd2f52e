"""Transactions that lose against another one, as on PostgreSQL and MariaDB."""

import pytest
from transaction.interfaces import TransientError

from identity.storage.errors import StorageUnavailable
from identity.storage.memory.backend import MemoryTransactionParticipant
from identity.testing.world import World


class ConflictingBackend(StorageUnavailable, TransientError):
    """What the SQL backend raises for a deadlock or a serialization failure."""


def contend(world: World, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """The outcomes of the next commits, to be filled by the test: False loses; past the end of the list all succeed."""
    outcomes: list[bool] = []

    def vote(self: MemoryTransactionParticipant, transaction: object) -> None:
        if outcomes and not outcomes.pop(0):
            raise ConflictingBackend("another transaction was in the way")

    monkeypatch.setattr(world.identity.backend, "has_write_conflicts", True)
    monkeypatch.setattr(MemoryTransactionParticipant, "tpc_vote", vote)
    return outcomes
