"""The service's own signer passes the contract; a signer that hangs delays nobody for longer than its timeout."""

import threading
import time
from collections.abc import Callable

import pytest

from identity.crypto.signature_keys import PrivateKey
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.signers import CreatedKey, ExternalSigner, Signer, SignerUnavailable, SoftwareSigner
from identity.testing.signer_contract import SignerContract


class TestSoftwareSigner(SignerContract):
    @pytest.fixture
    def make_signer(self) -> Callable[[], Signer]:
        return SoftwareSigner


class HangingSigner(ExternalSigner):
    """Signs when ``go_on`` is set."""

    name = "hanging"
    signing_timeout = 0.1

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()
        self.calls: list[bytes] = []

    def generate(self, key_id: str, algorithm: SignatureAlgorithm, bits: int) -> CreatedKey:
        raise NotImplementedError

    def sign(self, reference: bytes, algorithm: SignatureAlgorithm, data: bytes) -> bytes:
        self.calls.append(data)
        self.go_on.wait()
        return data

    def check(self) -> None:
        self.go_on.wait()


def test_signer_that_hangs_is_refused_at_once_until_it_responds() -> None:
    signer = HangingSigner()
    key = signer.open_key(b"", PrivateKey.generate(algorithm="ES256").public_key())
    with pytest.raises(SignerUnavailable, match="within"):
        key.sign_bytes(b"first")
    for _ in range(3):
        with pytest.raises(SignerUnavailable, match="earlier request"):
            key.sign_bytes(b"refused")
    assert "earlier request" in str(signer.find_problem())
    signer.go_on.set()
    deadline = time.monotonic() + 10
    while signer.find_problem() is not None:
        assert time.monotonic() < deadline
    assert key.sign_bytes(b"second") == b"second"
    assert signer.calls == [b"first", b"second"]


def test_errors_of_a_signer_mean_unavailable() -> None:
    signer = HangingSigner()
    with pytest.raises(SignerUnavailable, match="NotImplementedError"):
        signer.create_key("kid", SignatureAlgorithm.ES256, 2048)
