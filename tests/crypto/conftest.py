import pytest

from identity.crypto.rsa_keys import RsaPrivateKey


@pytest.fixture(scope="session")
def key() -> RsaPrivateKey:
    return RsaPrivateKey.generate()


@pytest.fixture(scope="session")
def other_key() -> RsaPrivateKey:
    return RsaPrivateKey.generate()
