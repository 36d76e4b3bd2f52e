"""Contract of the signing key store."""

from dataclasses import replace
from datetime import timedelta

import pytest

from identity.storage.contract import factories as make
from identity.storage.contract.factories import make_id
from identity.storage.contract.harness import ContractBase, StorageHarness
from identity.storage.errors import RowNotFound


class SigningKeyContract(ContractBase):
    """Each generation exists once."""

    def test_signing_keys_come_oldest_generation_first_and_change_one_by_one(self, on: StorageHarness) -> None:
        first, second, third = (make.signing_key(generation) for generation in (1, 2, 3))
        on.store(third, first, second)
        assert on.read.signing_keys.list_all() == (first, second, third)
        on.write.signing_keys.update_sealed_private_key(second.id, b"sealed anew \x00")
        resealed = replace(second, sealed_private_key=b"sealed anew \x00")
        assert on.read.signing_keys.list_all() == (first, resealed, third)
        on.write.signing_keys.delete(first.id)
        assert on.read.signing_keys.list_all() == (resealed, third)

    def test_signing_keys_retire_once(self, on: StorageHarness) -> None:
        key, moment = make.signing_key(1), make.NOW
        on.store(key)
        assert on.write.signing_keys.retire(key.id, moment) is True
        assert on.write.signing_keys.retire(key.id, moment + timedelta(seconds=1)) is False
        assert on.write.signing_keys.retire(make_id(), moment) is False
        assert on.read.signing_keys.list_all() == (replace(key, retired_at=moment),)

    def test_signing_keys_that_are_unknown_are_neither_resealed_nor_removed(self, on: StorageHarness) -> None:
        with on.transaction() as storage:
            with pytest.raises(RowNotFound):
                storage.signing_keys.update_sealed_private_key(make_id(), b"sealed")
            with pytest.raises(RowNotFound):
                storage.signing_keys.delete(make_id())
