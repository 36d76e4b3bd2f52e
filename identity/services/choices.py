"""Choices: what the loaded plugins offer for applications to be registered with."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from identity.domain.users import Subject

#: Whether a person, given with the services, could sign in by a way while holding a role at the instance.
HasWay = Callable[[Subject, Any], bool]

#: The registered name of what response types with tokens are: no grant of the token endpoint, and no choice of its own.
IMPLICIT = "implicit"


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantChoice:
    """What a grant type says of itself; see ``identity.provider.grant.Grant``."""

    takes_codes: bool = False
    brings_refresh_tokens: bool = False
    takes_refresh_tokens: bool = False
    confidential: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseChoice:
    """What a response type brings: a code and nothing else, or tokens that pass through the browser."""

    code_alone: bool = False
    fronts_tokens: bool = False


@dataclass(frozen=True, slots=True)
class Choices:
    """Names, in the order in which plugins offer them; of ``ways`` to sign in also what people know them as.

    Of the ways ``alone`` names the factors that take the place of a password, ``elsewhere`` those that lead to somebody
    else who knows people, ``second`` the factors that count beside a password here, and ``by_mail`` those of them that
    take a mailbox. ``has`` tells of ways that the core does not know itself, each with its factor, whether a person has
    it.
    """

    authentication_methods: tuple[str, ...]
    grants: Mapping[str, GrantChoice]
    responses: Mapping[str, ResponseChoice]
    ways: Mapping[str, str]
    alone: frozenset[str] = frozenset()
    elsewhere: frozenset[str] = frozenset()
    second: frozenset[str] = frozenset()
    by_mail: frozenset[str] = frozenset()
    has: tuple[tuple[str, HasWay], ...] = ()

    @property
    def grant_types(self) -> tuple[str, ...]:
        """The names of the grants."""
        return tuple(self.grants)

    @property
    def response_types(self) -> tuple[str, ...]:
        """The names of the response types."""
        return tuple(self.responses)

    @property
    def of_fields(self) -> Mapping[str, tuple[str, ...]]:
        """The names that each field of an application may hold."""
        return {
            "authentication_method": self.authentication_methods,
            "grant_types": (*self.grant_types, *([IMPLICIT] if self.fronts_tokens(self.responses) else [])),
            "response_types": self.response_types,
        }

    def fronts_tokens(self, response_types: Iterable[str]) -> bool:
        """True if tokens of one of them pass through the browser."""
        return any(self.responses[one].fronts_tokens for one in response_types if one in self.responses)

    def grants_that(self, which: Callable[[GrantChoice], bool]) -> frozenset[str]:
        """The names of those grants."""
        return frozenset(name for name, one in self.grants.items() if which(one))
