"""Hashes and verifies passwords with argon2id (RFC 9106)."""

import unicodedata
from dataclasses import dataclass
from functools import lru_cache

import argon2
from argon2.exceptions import VerificationError, VerifyMismatchError

from identity.domain.errors import Invalid

HASH_LENGTH = 32
SALT_LENGTH = 16

# Upper bounds for stored hashes, so that a damaged or planted hash cannot exhaust the machine.
MAX_MEMORY_KIB = 1024 * 1024
MAX_ITERATIONS = 32
MAX_PARALLELISM = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Argon2Cost:
    """Cost of a hash: memory in KiB, passes, lanes.

    Raises Invalid below the minimum of the OWASP password storage cheat sheet: 46 MiB with one pass or 19 MiB with
    two.
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
    """Whether the password matches, and whether its hash has outdated costs.

    ``needs_rehash`` is true only together with ``is_match``: hash the password again then.
    """

    is_match: bool
    needs_rehash: bool


DEFAULT_COST = Argon2Cost()
NO_MATCH = HashVerification(is_match=False, needs_rehash=False)


def hash_password(password: str, *, cost: Argon2Cost = DEFAULT_COST) -> str:
    """The hash to store, with its parameters and a random salt inside (PHC string format).

    Takes tens of milliseconds and ``cost.memory_kib`` of memory; releases the GIL.
    """
    return cached_hasher(cost).hash(_normalize(password))


def verify_password(stored: str, password: str, *, cost: Argon2Cost = DEFAULT_COST) -> HashVerification:
    """Compare ``password`` with a ``stored`` hash.

    A damaged hash never matches and takes the same time, so that it cannot be distinguished.
    """
    if not _is_within_limits(stored):
        return verify_dummy(password, cost=cost)
    hasher = cached_hasher(cost)
    try:
        hasher.verify(stored, _normalize(password))
    except VerifyMismatchError:
        return NO_MATCH
    except (VerificationError, ValueError):
        return verify_dummy(password, cost=cost)
    return HashVerification(is_match=True, needs_rehash=hasher.check_needs_rehash(stored))


def verify_dummy(password: str, *, cost: Argon2Cost = DEFAULT_COST) -> HashVerification:
    """The result for a user who does not exist: no match, after the work of a verification."""
    hash_password(password, cost=cost)
    return NO_MATCH


@lru_cache(maxsize=8)
def cached_hasher(cost: Argon2Cost) -> argon2.PasswordHasher:
    return argon2.PasswordHasher(
        time_cost=cost.iterations,
        memory_cost=cost.memory_kib,
        parallelism=cost.parallelism,
        hash_len=HASH_LENGTH,
        salt_len=SALT_LENGTH,
        type=argon2.Type.ID,
    )


def _normalize(password: str) -> bytes:
    """Unicode NFC, because keyboards produce different forms (NIST SP 800-63B)."""
    return unicodedata.normalize("NFC", password).encode("utf-8", "surrogatepass")


def _is_within_limits(stored: str) -> bool:
    """True for an argon2id hash within the bounds above."""
    try:
        parameters = argon2.extract_parameters(stored)
    except ValueError:
        return False
    return (
        parameters.type is argon2.Type.ID
        and parameters.memory_cost <= MAX_MEMORY_KIB
        and parameters.time_cost <= MAX_ITERATIONS
        and parameters.parallelism <= MAX_PARALLELISM
    )
