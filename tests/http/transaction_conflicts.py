"""Simulated transaction conflicts, as PostgreSQL and MariaDB report them."""

import pytest
from transaction.interfaces import TransientError

from identity.storage.errors import StorageUnavailable
from identity.storage.memory.backend import MemoryTransactionParticipant
from identity.testing.world import World


class ConflictingBackend(StorageUnavailable, TransientError):
    """The exception that the SQL backend raises for a deadlock or a serialization failure."""


def contend(world: World, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """A list that the test fills with the outcomes of the next commits. False is a conflict; once it is empty, every
    commit succeeds."""
    outcomes: list[bool] = []

    def vote(self: MemoryTransactionParticipant, transaction: object) -> None:
        if outcomes and not outcomes.pop(0):
            raise ConflictingBackend("another transaction was in the way")

    monkeypatch.setattr(world.identity.backend, "has_write_conflicts", True)
    monkeypatch.setattr(MemoryTransactionParticipant, "tpc_vote", vote)
    return outcomes
