"""Choices: what the loaded plugins offer for applications to be registered with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from identity.domain.users import Subject

#: Whether a person, given with the services, could sign in by a way while holding a role at the instance.
HasWay = Callable[[Subject, Any], bool]

#: The registered name of what response types with tokens are: no grant of the token endpoint, and no choice of its own.
IMPLICIT = "implicit"


def brings_tokens(response_type: str) -> bool:
    """True if tokens of this response type pass through the browser."""
    return not {"id_token", "token"}.isdisjoint(response_type.split())


@dataclass(frozen=True, slots=True)
class Choices:
    """Names, in the order in which plugins offer them; of ``ways`` to sign in also what people know them as.

    Of the ways ``alone`` names the factors that take the place of a password, ``elsewhere`` those that lead to somebody
    else who knows people, ``second`` the factors that count beside a password here, and ``by_mail`` those of them that
    take a mailbox. ``has`` tells of ways that the core does not know itself, each with its factor, whether a person has
    it.
    """

    authentication_methods: tuple[str, ...]
    grant_types: tuple[str, ...]
    response_types: tuple[str, ...]
    ways: Mapping[str, str]
    alone: frozenset[str] = frozenset()
    elsewhere: frozenset[str] = frozenset()
    second: frozenset[str] = frozenset()
    by_mail: frozenset[str] = frozenset()
    has: tuple[tuple[str, HasWay], ...] = ()

    @property
    def of_fields(self) -> Mapping[str, tuple[str, ...]]:
        """The names that each field of an application may hold."""
        return {
            "authentication_method": self.authentication_methods,
            "grant_types": (*self.grant_types, *([IMPLICIT] if any(map(brings_tokens, self.response_types)) else [])),
            "response_types": self.response_types,
        }
