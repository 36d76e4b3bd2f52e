import pytest

from identity.crypto.rsa_keys import RsaPrivateKey, generate_rsa_private_key


@pytest.fixture(scope="session")
def key() -> RsaPrivateKey:
    return generate_rsa_private_key()


@pytest.fixture(scope="session")
def other_key() -> RsaPrivateKey:
    return generate_rsa_private_key()
