"""What is demanded of the signing key store."""

from dataclasses import replace

import pytest

from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import a_signing_key, an_id
from identity.storage.errors import Missing


class SigningKeyContract(ContractBase):
    """Each generation exists once."""

    def test_signing_keys_come_oldest_generation_first_and_change_one_by_one(self, on: On) -> None:
        first, second, third = (a_signing_key(generation) for generation in (1, 2, 3))
        on.save(third, first, second)
        assert on.read.signing_keys.all() == (first, second, third)
        on.write.signing_keys.reseal(second.id, b"sealed anew \x00")
        resealed = replace(second, sealed_private_key=b"sealed anew \x00")
        assert on.read.signing_keys.all() == (first, resealed, third)
        on.write.signing_keys.remove(first.id)
        assert on.read.signing_keys.all() == (resealed, third)

    def test_signing_keys_that_are_unknown_are_neither_resealed_nor_removed(self, on: On) -> None:
        with on.writing() as storage:
            with pytest.raises(Missing):
                storage.signing_keys.reseal(an_id(), b"sealed")
            with pytest.raises(Missing):
                storage.signing_keys.remove(an_id())
