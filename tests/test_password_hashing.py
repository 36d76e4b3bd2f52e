"""Password hashing: few hashes at a time, a short queue, then an error; waiting callers yield."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from identity import password_hashing
from identity.crypto.argon2id import Argon2Cost, HashVerification
from identity.password_hashing import MAX_QUEUED_PASSWORDS, PasswordHasher, ServerBusy

CHEAP = Argon2Cost(memory_kib=19456, iterations=2)


@pytest.fixture
def hasher() -> Iterator[PasswordHasher]:
    password_hasher = PasswordHasher(CHEAP, workers=1)
    yield password_hasher
    password_hasher.close()


def test_hashed_password_verifies(hasher: PasswordHasher) -> None:
    stored = hasher.hash("correct horse")
    assert hasher.verify(stored, "correct horse") == HashVerification(is_match=True, needs_rehash=False)
    assert not hasher.verify(stored, "correct house").is_match


def test_unknown_user_costs_a_hash(hasher: PasswordHasher, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []
    monkeypatch.setattr(
        password_hashing,
        "verify_dummy",
        lambda password, cost: hashed.append(password) or HashVerification(False, False),
    )
    assert not hasher.verify(None, "anything").is_match
    assert hashed == ["anything"]


def test_hash_of_another_cost_is_outdated(hasher: PasswordHasher) -> None:
    dearer = PasswordHasher(Argon2Cost(), workers=1)
    assert dearer.verify(hasher.hash("correct horse"), "correct horse").needs_rehash
    dearer.close()


def test_full_queue_is_refused(hasher: PasswordHasher, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the queue full, the next caller is refused at once; afterwards there is room again."""
    go_on = threading.Event()
    monkeypatch.setattr(password_hashing, "hash_password", lambda password, cost: go_on.wait(30) and "$hash$")
    waiting = MAX_QUEUED_PASSWORDS + 1
    with ThreadPoolExecutor(waiting) as threads:
        begun = threading.Barrier(waiting + 1)

        def ask() -> str:
            begun.wait(30)
            return hasher.hash("x")

        answers = [threads.submit(ask) for _ in range(waiting)]
        begun.wait(30)
        refused = 0
        while not refused:
            # Wait until all of them run or are queued.
            if not hasher._semaphore._all.free:
                with pytest.raises(ServerBusy) as busy:
                    hasher.hash("x")
                refused += 1
                assert busy.value.seconds > 0
        go_on.set()
        assert [answer.result(30) for answer in answers] == ["$hash$"] * waiting
    assert hasher.hash("x") == "$hash$"


def test_waiting_hash_yields_to_other_greenlets(hasher: PasswordHasher, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []

    @contextmanager
    def step() -> Iterator[None]:
        steps.append("aside")
        yield
        steps.append("back")

    monkeypatch.setattr(password_hashing, "released_slot", step)
    hasher.hash("x")
    assert steps == ["aside", "back"]


def test_failed_hash_releases_its_slot(hasher: PasswordHasher, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(password: str, cost: Argon2Cost) -> str:
        raise MemoryError

    monkeypatch.setattr(password_hashing, "hash_password", fail)
    for _ in range(MAX_QUEUED_PASSWORDS + 5):
        with pytest.raises(MemoryError):
            hasher.hash("x")


def test_processes_share_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("identity.cpu_count.available_cpus", lambda: 9)
    for processes, threads in ((1, 8), (2, 4), (9, 1)):
        hasher = PasswordHasher(CHEAP)
        hasher.set_process_count(processes)
        assert hasher._workers == threads
