import pytest

from identity.crypto.signature_keys import PrivateKey


@pytest.fixture(scope="session")
def key() -> PrivateKey:
    return PrivateKey.generate()


@pytest.fixture(scope="session")
def other_key() -> PrivateKey:
    return PrivateKey.generate()
