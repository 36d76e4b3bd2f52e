"""What is demanded of the signing key store."""

from dataclasses import replace
from datetime import timedelta

import pytest

from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import a_signing_key, an_id
from identity.storage.errors import Missing


class SigningKeyContract(ContractBase):
    """Each generation exists once."""

    def test_signing_keys_all_returns_what_was_added_oldest_generation_first(self, on: On) -> None:
        first, second, third = (a_signing_key(generation) for generation in (1, 2, 3))
        second = replace(
            second,
            algorithm="ES256",
            public_key=bytes(range(256)),
            sealed_private_key=bytes(reversed(range(256))) * 8,
            active_at=second.created_at + timedelta(minutes=6),
        )
        on.save(third, first, second)
        assert on.read.signing_keys.all() == (first, second, third)

    def test_signing_keys_reseal(self, on: On) -> None:
        first, second = a_signing_key(1), a_signing_key(2)
        on.save(first, second)
        on.write.signing_keys.reseal(first.id, b"sealed anew \x00")
        assert on.read.signing_keys.all() == (replace(first, sealed_private_key=b"sealed anew \x00"), second)

    def test_signing_keys_reseal_of_an_unknown_key(self, on: On) -> None:
        with pytest.raises(Missing):
            on.write.signing_keys.reseal(an_id(), b"sealed")

    def test_signing_keys_remove(self, on: On) -> None:
        first, second = a_signing_key(1), a_signing_key(2)
        on.save(first, second)
        on.write.signing_keys.remove(first.id)
        assert on.read.signing_keys.all() == (second,)

    def test_signing_keys_remove_of_an_unknown_key(self, on: On) -> None:
        with pytest.raises(Missing):
            on.write.signing_keys.remove(an_id())
