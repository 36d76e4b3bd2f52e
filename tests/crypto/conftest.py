import pytest

from identity.crypto.keys import PrivateKey, generate_private_key


@pytest.fixture(scope="session")
def key() -> PrivateKey:
    return generate_private_key()


@pytest.fixture(scope="session")
def other_key() -> PrivateKey:
    return generate_private_key()
