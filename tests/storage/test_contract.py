"""The storage contract: none of its parts hides a test or fixture of another."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from identity.storage.contract import StorageContract
from identity.storage.contract.harness import ContractBase, StorageHarness
from identity.storage.memory.backend import MemoryBackend, MemoryTransactionParticipant


def test_storage_mixins_do_not_override_each_other() -> None:
    owners = defaultdict(list)
    for part in StorageContract.__mro__:
        if issubclass(part, ContractBase):
            for name in vars(part):
                if not name.startswith("__"):
                    owners[name].append(part.__name__)
    assert {name: parts for name, parts in owners.items() if len(parts) > 1} == {}


class Hasty(MemoryTransactionParticipant):
    """Publishes its changes at the vote, before the other participants have voted."""

    def tpc_vote(self, transaction: Any) -> None:
        super().tpc_finish(transaction)


class Forgetful(MemoryBackend):
    """Claims to keep everything, but keeps nothing."""

    is_durable: ClassVar[bool] = True


@pytest.fixture
def reopen() -> Callable[[], MemoryBackend]:
    return Forgetful


def test_contract_catches_a_backend_that_is_done_at_the_vote(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    demand = StorageContract().test_transactions_nothing_is_seen_before_all_others_have_voted
    demand(StorageHarness(MemoryBackend(), request))
    monkeypatch.setattr("identity.storage.memory.backend.MemoryTransactionParticipant", Hasty)
    with pytest.raises(AssertionError):
        demand(StorageHarness(MemoryBackend(), request))


def test_contract_catches_a_backend_that_forgets(request: pytest.FixtureRequest) -> None:
    demand = StorageContract().test_backend_what_is_committed_is_there_when_it_is_opened_once_more
    with pytest.raises(AssertionError):
        demand(StorageHarness(Forgetful(), request), request)
    with pytest.raises(pytest.skip.Exception, match="not durable"):
        demand(StorageHarness(MemoryBackend(), request), request)
