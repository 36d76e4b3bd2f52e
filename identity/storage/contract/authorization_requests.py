"""Contract of the authorization request store."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from identity.domain.authentication import Proof
from identity.domain.sessions import PendingAuthorization
from identity.storage.backend import Storage
from identity.storage.contract import factories as make
from identity.storage.contract.factories import NOW, SECOND, make_digest, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness, require_found
from identity.storage.errors import AlreadyUsed, RowNotFound, StaleRow


class AuthorizationRequestContract(ContractBase):
    """A request continues version by version, and finishes once."""

    @pytest.fixture
    def pending(self, on: StorageHarness) -> PendingAuthorization:
        return on.store_value(make.pending_authorization())

    def test_requests_keep_their_parameters_whatever_becomes_of_the_caller_s(self, on: StorageHarness) -> None:
        parameters = {"state": "before"}
        pending = on.store_value(make.pending_authorization(parameters=parameters))
        parameters["state"] = "after"
        pending_authorization = require_found(on.read.authorization_requests.find(pending.id))
        assert pending_authorization.parameters == {"state": "before"}

    def test_requests_update_replaces_the_value(self, on: StorageHarness, pending: PendingAuthorization) -> None:
        pending_authorization = on.store_value(make.pending_authorization())
        changed = replace(
            pending,
            digest=make_digest(),
            expires_at=pending.expires_at + SECOND,
            parameters={"prompt": "login"},
            login_name="grace",
            user_id=on.human_user.id,
            authenticated_at=NOW,
            proofs=(Proof("door", ("pwd",), NOW),),
            session_id=make_id(),
            done=frozenset({"login"}),
            version=2,
        )
        on.write.authorization_requests.update(changed)
        assert on.read.authorization_requests.find(pending.id) == changed
        assert on.read.authorization_requests.find(pending_authorization.id) == pending_authorization

    @pytest.mark.parametrize("version", [0, 1, 3])
    def test_requests_update_of_another_version_is_stale(
        self, on: StorageHarness, pending: PendingAuthorization, version: int
    ) -> None:
        with on.transaction() as storage, pytest.raises(StaleRow):
            storage.authorization_requests.update(replace(pending, login_name="lost", version=version))
        assert on.read.authorization_requests.find(pending.id) == pending

    def test_requests_update_of_a_finished_one_is_stale(
        self, on: StorageHarness, pending: PendingAuthorization
    ) -> None:
        on.write.authorization_requests.finish(pending.id, NOW, version=1)
        with on.transaction() as storage, pytest.raises(StaleRow):
            storage.authorization_requests.update(replace(pending, login_name="late", version=2))
        assert on.read.authorization_requests.find(pending.id) == replace(pending, finished_at=NOW)

    def test_requests_update_of_an_unknown_one(self, on: StorageHarness) -> None:
        with pytest.raises(RowNotFound):
            on.write.authorization_requests.update(make.pending_authorization(version=2))

    def test_requests_of_deleted_or_unknown_user_are_refused_or_gone(
        self, on: StorageHarness, pending: PendingAuthorization
    ) -> None:
        proved = on.store_value(make.pending_authorization(user_id=on.human_user.id, authenticated_at=NOW))
        with pytest.raises(RowNotFound):
            on.write.authorization_requests.update(replace(pending, user_id=make_id(), version=2))
        with pytest.raises(RowNotFound):
            on.write.authorization_requests.add(make.pending_authorization(user_id=make_id()))
        on.write.users.delete(on.human_user.id)
        assert on.read.authorization_requests.find(proved.id) is None
        assert on.read.authorization_requests.find(pending.id) == pending

    def test_requests_begin_anew(self, on: StorageHarness) -> None:
        human_user = on.human_user
        user = on.store_value(make.human_user(on.organization))
        proof: dict[str, Any] = {
            "authenticated_at": NOW,
            "proofs": (Proof("password", ("pwd",), NOW), Proof("totp", ("otp",), NOW)),
            "login_name": "ada",
            "done": frozenset({"login", "consent"}),
        }
        first, second = (make.pending_authorization(user_id=human_user.id, version=3, **proof) for _ in range(2))
        finished = make.pending_authorization(user_id=human_user.id, finished_at=NOW, **proof)
        foreign = make.pending_authorization(user_id=user.id, **proof)
        nobody_s = make.pending_authorization(session_id=make_id())
        on.store(first, second, finished, foreign, nobody_s)
        assert on.write.authorization_requests.reset_for_user(human_user.id, except_id=first.id) == 1
        anew = on.read.authorization_requests.find(second.id)
        assert anew == replace(second, user_id=None, authenticated_at=None, proofs=(), done=frozenset(), version=4)
        for pending in (first, finished, foreign, nobody_s):
            assert on.read.authorization_requests.find(pending.id) == pending
        with on.transaction() as storage:
            with pytest.raises(StaleRow):
                storage.authorization_requests.update(replace(second, version=4))
            with pytest.raises(StaleRow):
                storage.authorization_requests.finish(second.id, NOW, version=3)
            assert storage.authorization_requests.reset_for_user(human_user.id) == 1
            assert storage.authorization_requests.reset_for_user(human_user.id) == 0
            assert storage.authorization_requests.finish(second.id, NOW, version=4) == anew

    def test_requests_finish_returns_the_request_as_it_was(
        self, on: StorageHarness, pending: PendingAuthorization
    ) -> None:
        assert on.write.authorization_requests.finish(pending.id, NOW, version=1) == pending
        assert on.read.authorization_requests.find(pending.id) == replace(pending, finished_at=NOW)

    def test_requests_second_finish_reports_request_and_keeps_transaction_usable(
        self, on: StorageHarness, pending: PendingAuthorization
    ) -> None:
        on.write.authorization_requests.finish(pending.id, NOW, version=1)
        pending_authorization = make.pending_authorization()
        with on.transaction() as storage:
            with pytest.raises(AlreadyUsed) as refusal:
                storage.authorization_requests.finish(pending.id, NOW + SECOND, version=1)
            storage.authorization_requests.add(pending_authorization)
        finished = replace(pending, finished_at=NOW)
        assert refusal.value.value == finished, "the first one is the one that counts"
        assert on.read.authorization_requests.find(pending.id) == finished
        assert on.read.authorization_requests.find(pending_authorization.id) == pending_authorization

    def test_requests_an_unknown_one_cannot_be_finished(self, on: StorageHarness) -> None:
        with pytest.raises(RowNotFound):
            on.write.authorization_requests.finish(make_id(), NOW, version=1)

    def test_requests_races_a_request_is_finished_once(self, on: StorageHarness, pending: PendingAuthorization) -> None:
        winner = on.race(partial(finish, request_id=pending.id), 100).single_winner(losers="AlreadyUsed")
        assert winner.value == pending
        assert on.read.authorization_requests.find(pending.id) == replace(
            pending, finished_at=NOW + winner.number * SECOND
        )

    def test_requests_races_of_finishing_and_changing_one_version_one_wins(self, on: StorageHarness) -> None:
        for _ in range(4):
            pending = on.store_value(make.pending_authorization())
            outcomes = on.race(partial(finish_or_update, pending=pending), 24)
            assert set(outcomes.errors) <= {"AlreadyUsed", "StaleRow"}, outcomes.errors
            (winner,) = outcomes.committed
            changed = replace(pending, login_name=str(winner.number), version=2)
            pending_authorization = on.read.authorization_requests.find(pending.id)
            assert pending_authorization == (changed if winner.value is None else replace(pending, finished_at=NOW))


# Race attempts run in other processes, too: they must be module-level functions.


def finish(storage: Storage, number: int, *, request_id: str) -> PendingAuthorization:
    """Finish the request at a different time per attempt."""
    return storage.authorization_requests.finish(request_id, NOW + number * SECOND, version=1)


def finish_or_update(storage: Storage, number: int, *, pending: PendingAuthorization) -> PendingAuthorization | None:
    """Finish the request or, every other time, store its next version."""
    if number % 2:
        return storage.authorization_requests.finish(pending.id, NOW, version=1)
    storage.authorization_requests.update(replace(pending, login_name=str(number), version=2))
    return None
