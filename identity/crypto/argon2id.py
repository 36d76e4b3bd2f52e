"""Passwords, hashed with argon2id (RFC 9106) and verified."""

import unicodedata
from dataclasses import dataclass
from functools import lru_cache

import argon2
from argon2.exceptions import VerificationError, VerifyMismatchError

from identity.domain.errors import Invalid

HASH_LENGTH = 32
SALT_LENGTH = 16

# What a stored hash may ask of us; a damaged or planted one must not eat the machine.
MAX_MEMORY_KIB = 1024 * 1024
MAX_ITERATIONS = 32
MAX_PARALLELISM = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Argon2Cost:
    """What a hash costs: memory in KiB, passes over it, lanes.

    Raises Invalid below the floor of the OWASP password storage cheat sheet: 46 MiB once or 19 MiB twice.
    """

    memory_kib: int = 47104
    iterations: int = 1
    parallelism: int = 1

    def __post_init__(self) -> None:
        if self.memory_kib < 19456 or self.iterations < 1 or (self.memory_kib < 47104 and self.iterations < 2):
            raise Invalid({"memory_kib": "Use at least 47104 KiB, or at least 19456 KiB with 2 or more iterations."})
        if self.memory_kib > MAX_MEMORY_KIB:
            raise Invalid({"memory_kib": f"Use at most {MAX_MEMORY_KIB} KiB."})
        if self.iterations > MAX_ITERATIONS:
            raise Invalid({"iterations": f"Use at most {MAX_ITERATIONS} iterations."})
        if not 1 <= self.parallelism <= MAX_PARALLELISM:
            raise Invalid({"parallelism": f"Use 1 to {MAX_PARALLELISM} lanes."})


@dataclass(frozen=True, slots=True)
class HashVerification:
    """Whether the password matches, and whether its hash was made at another cost than today's.

    ``needs_rehash`` is only ever true beside ``is_match``: that is the moment to hash the password anew.
    """

    is_match: bool
    needs_rehash: bool


DEFAULT_COST = Argon2Cost()
_NO_MATCH = HashVerification(is_match=False, needs_rehash=False)


def hash_password(password: str, *, cost: Argon2Cost = DEFAULT_COST) -> str:
    """The hash to store, with its parameters and a random salt inside (PHC string format).

    Takes tens of milliseconds and ``cost.memory_kib`` of memory; releases the GIL.
    """
    return _cached_hasher(cost).hash(_normalize(password))


def verify_password(stored: str, password: str, *, cost: Argon2Cost = DEFAULT_COST) -> HashVerification:
    """Whether ``password`` is the one that ``stored`` was made from.

    A damaged hash matches nothing, after the same work: it must not tell itself apart.
    """
    if not _is_within_limits(stored):
        return verify_dummy(password, cost=cost)
    hasher = _cached_hasher(cost)
    try:
        hasher.verify(stored, _normalize(password))
    except VerifyMismatchError:
        return _NO_MATCH
    except (VerificationError, ValueError):
        return verify_dummy(password, cost=cost)
    return HashVerification(is_match=True, needs_rehash=hasher.check_needs_rehash(stored))


def verify_dummy(password: str, *, cost: Argon2Cost = DEFAULT_COST) -> HashVerification:
    """The verdict on a user who does not exist: no match, after the work that a verification takes."""
    hash_password(password, cost=cost)
    return _NO_MATCH


@lru_cache(maxsize=8)
def _cached_hasher(cost: Argon2Cost) -> argon2.PasswordHasher:
    return argon2.PasswordHasher(
        time_cost=cost.iterations,
        memory_cost=cost.memory_kib,
        parallelism=cost.parallelism,
        hash_len=HASH_LENGTH,
        salt_len=SALT_LENGTH,
        type=argon2.Type.ID,
    )


def _normalize(password: str) -> bytes:
    """One form for what different keyboards write in different ways (NFC, as NIST SP 800-63B asks)."""
    return unicodedata.normalize("NFC", password).encode("utf-8", "surrogatepass")


def _is_within_limits(stored: str) -> bool:
    """True if ``stored`` reads as an argon2id hash within the bounds above."""
    try:
        asked = argon2.extract_parameters(stored)
    except ValueError:
        return False
    return (
        asked.type is argon2.Type.ID
        and asked.memory_cost <= MAX_MEMORY_KIB
        and asked.time_cost <= MAX_ITERATIONS
        and asked.parallelism <= MAX_PARALLELISM
    )
