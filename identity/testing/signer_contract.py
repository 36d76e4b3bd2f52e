"""The contract that every signer passes, as a pytest class to inherit from.

.. code-block:: python

    class TestCloudKeys(SignerContract):
        @pytest.fixture
        def make_signer(self, server):
            return lambda: CloudKeys(server.url)

Signers that ``make_signer`` creates have the same keys, like those of several processes. ``algorithms`` are those that
the signer supports.
"""

import os
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import pytest

from identity.crypto.jwt import InvalidTokenSignature, UnverifiedToken, sign
from identity.crypto.secrets import new_id
from identity.crypto.signature_keys import ExternalKey, InvalidKey, PrivateKey
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.signers import Signer, SignerUnavailable

_BITS = 2048


class SignerContract:
    """Keys sign in every process, in threads, and after a fork."""

    algorithms: ClassVar[Collection[SignatureAlgorithm]] = tuple(SignatureAlgorithm)

    @pytest.fixture
    def make_signer(self) -> Callable[[], Signer]:
        raise NotImplementedError

    @pytest.fixture
    def signer(self, make_signer: Callable[[], Signer]) -> Signer:
        return make_signer()

    @pytest.fixture(params=tuple(SignatureAlgorithm))
    def algorithm(self, request: pytest.FixtureRequest) -> SignatureAlgorithm:
        if request.param not in self.algorithms:
            pytest.skip("not an algorithm of this signer")
        return SignatureAlgorithm(request.param)

    def test_another_process_signs_with_the_key(
        self, make_signer: Callable[[], Signer], algorithm: SignatureAlgorithm
    ) -> None:
        created = make_signer().create_key(new_id(), algorithm, _BITS)
        assert created.public_key.algorithm == algorithm
        assert created.public_key.bits in (256, _BITS)
        key = make_signer().open_key(created.reference, created.public_key)
        assert (key.algorithm, key.public_key()) == (algorithm, created.public_key)
        # Also a token as long as any.
        for claims in ({}, {"sub": "ada"}, {"sub": "x" * 20_000}):
            text = sign(claims, key, key_id="kid")
            assert UnverifiedToken.parse(text, max_length=40_000).verify(created.public_key) == claims

    def test_keys_differ(self, signer: Signer, algorithm: SignatureAlgorithm) -> None:
        key_id = new_id()
        first, second = (signer.create_key(key_id, algorithm, _BITS) for _ in range(2))
        assert first.reference != second.reference
        assert first.public_key != second.public_key
        token = UnverifiedToken.parse(sign({}, signer.open_key(first.reference, first.public_key), key_id=key_id))
        with pytest.raises(InvalidTokenSignature):
            token.verify(second.public_key)

    def test_reference_of_no_key_is_refused(self, signer: Signer, algorithm: SignatureAlgorithm) -> None:
        created = signer.create_key(new_id(), algorithm, _BITS)
        for reference in (b"", b"\x00" * 16, b"00" * 16, created.reference[:-1]):
            with pytest.raises((InvalidKey, SignerUnavailable)):
                sign({}, signer.open_key(reference, created.public_key), key_id="kid")

    def test_threads_share_the_signer(self, signer: Signer, algorithm: SignatureAlgorithm) -> None:
        created = signer.create_key(new_id(), algorithm, _BITS)
        key = signer.open_key(created.reference, created.public_key)
        with ThreadPoolExecutor(8) as pool:
            texts = list(pool.map(lambda number: sign({"n": number}, key, key_id="kid"), range(40)))
        claims = [UnverifiedToken.parse(text).verify(created.public_key) for text in texts]
        assert claims == [{"n": number} for number in range(40)]

    def test_child_process_signs_as_well(self, signer: Signer) -> None:
        algorithm = SignatureAlgorithm.ES256
        created = signer.create_key(new_id(), algorithm, _BITS)
        key = signer.open_key(created.reference, created.public_key)
        sign({}, key, key_id="kid")
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = 0 if _is_valid(key) else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert _is_valid(key)

    def test_signer_that_works_has_no_problem(self, signer: Signer) -> None:
        assert signer.find_problem() is None


def _is_valid(key: PrivateKey | ExternalKey) -> bool:
    return UnverifiedToken.parse(sign({"sub": "ada"}, key, key_id="kid")).verify(key.public_key()) == {"sub": "ada"}
