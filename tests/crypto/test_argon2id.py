import argon2
import pytest

from identity.crypto import argon2id
from identity.crypto.argon2id import Argon2Cost, HashVerification, hash_password, verify_dummy, verify_password
from identity.domain.errors import Invalid

CHEAP = Argon2Cost(memory_kib=19456, iterations=2)
MATCH = HashVerification(is_match=True, needs_rehash=False)
NO_MATCH = HashVerification(is_match=False, needs_rehash=False)


@pytest.fixture(scope="module")
def stored() -> str:
    return hash_password("correct horse", cost=CHEAP)


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The parameters of every hash that was computed."""
    costs: list[str] = []

    class Counting(argon2.PasswordHasher):
        def hash(self, password: str | bytes, *, salt: bytes | None = None) -> str:
            costs.append(f"{self.memory_cost},{self.time_cost},{self.parallelism}")
            return super().hash(password, salt=salt)

        def verify(self, hash: str | bytes, password: str | bytes) -> bool:
            try:
                return super().verify(hash, password)
            finally:
                parameters = argon2.extract_parameters(str(hash))
                costs.append(f"{parameters.memory_cost},{parameters.time_cost},{parameters.parallelism}")

    monkeypatch.setattr(argon2id.argon2, "PasswordHasher", Counting)
    argon2id.cached_hasher.cache_clear()
    yield costs
    argon2id.cached_hasher.cache_clear()


def test_default_is_argon2id_at_47104_kib_once() -> None:
    stored = hash_password("correct horse")
    assert stored.startswith("$argon2id$v=19$m=47104,t=1,p=1$")
    assert verify_password(stored, "correct horse") == MATCH


def test_salts_differ_and_have_16_bytes(stored: str) -> None:
    assert hash_password("correct horse", cost=CHEAP) != stored
    assert argon2.extract_parameters(stored).salt_len == 16


@pytest.mark.parametrize("password", ["Correct horse", "correct horse ", "", "correct horse\0", "\ud800"])
def test_other_passwords_do_not_match(stored: str, password: str) -> None:
    assert verify_password(stored, password, cost=CHEAP) == NO_MATCH


@pytest.mark.parametrize("password", ["", "\0", "\ud800", "é" * 256, "\U0001f511"])
def test_any_string_can_be_a_password(password: str) -> None:
    assert verify_password(hash_password(password, cost=CHEAP), password, cost=CHEAP) == MATCH


def test_composed_and_decomposed_letters_are_the_same_password() -> None:
    assert verify_password(hash_password("Zu\u0308rich", cost=CHEAP), "Z\u00fcrich", cost=CHEAP) == MATCH


def test_compatibility_characters_are_not() -> None:
    assert verify_password(hash_password("\ufb01sh", cost=CHEAP), "fish", cost=CHEAP) == NO_MATCH


def test_hash_with_other_cost_is_outdated(stored: str) -> None:
    raised = Argon2Cost(memory_kib=20480, iterations=2)
    assert verify_password(stored, "correct horse", cost=raised) == HashVerification(is_match=True, needs_rehash=True)
    assert verify_password(stored, "wrong", cost=raised) == NO_MATCH


@pytest.mark.parametrize(
    ("memory_kib", "iterations", "parallelism"), [(47104, 1, 1), (19456, 2, 1), (65536, 3, 4), (30000, 2, 1)]
)
def test_costs_that_are_strong_enough(memory_kib: int, iterations: int, parallelism: int) -> None:
    assert Argon2Cost(memory_kib=memory_kib, iterations=iterations, parallelism=parallelism)


@pytest.mark.parametrize(
    ("memory_kib", "iterations", "parallelism"),
    [
        (47103, 1, 1),
        (19455, 2, 1),
        (12288, 3, 1),
        (47104, 0, 1),
        (47104, 1, 0),
        (-1, 2, 1),
        (2**21, 1, 1),
        (47104, 33, 1),
        (47104, 1, 17),
    ],
)
def test_costs_out_of_bounds(memory_kib: int, iterations: int, parallelism: int) -> None:
    with pytest.raises(Invalid):
        Argon2Cost(memory_kib=memory_kib, iterations=iterations, parallelism=parallelism)


def damaged(stored: str) -> dict[str, str]:
    return {
        "empty": "",
        "text": "not a hash",
        "dollars": "$$$$$",
        "cut": stored[:-1],
        "half": stored[: len(stored) // 2],
        "no hash": stored.rpartition("$")[0] + "$",
        "letters": stored.replace("$m=19456", "$m=many"),
        "unicode": stored[:-1] + "é",
        "surrogate": stored[:-1] + "\ud800",
        "huge memory": stored.replace("m=19456", "m=4294967295"),
        "endless": stored.replace("t=2", "t=4294967295"),
        "lanes": stored.replace("p=1", "p=16777215"),
        "negative": stored.replace("m=19456", "m=-1"),
        "argon2i": stored.replace("argon2id", "argon2i"),
        "argon2d": stored.replace("argon2id", "argon2d"),
        "bcrypt": "$2b$12$" + "a" * 53,
    }


@pytest.mark.sampled(12)
@pytest.mark.parametrize("kind", sorted(damaged("")))
def test_damaged_hash_matches_nothing_in_equal_time(stored: str, hashed: list[str], kind: str) -> None:
    assert verify_password(damaged(stored)[kind], "correct horse", cost=CHEAP) == NO_MATCH
    assert "19456,2,1" in hashed


def test_unknown_user_takes_equal_time(stored: str, hashed: list[str]) -> None:
    verify_password(stored, "wrong", cost=CHEAP)
    assert hashed == ["19456,2,1"]
    assert verify_dummy("wrong", cost=CHEAP) == NO_MATCH
    assert hashed == ["19456,2,1"] * 2
