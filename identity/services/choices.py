"""Choices: what the loaded plugins offer for applications to be registered with."""

from collections.abc import Mapping
from dataclasses import dataclass

#: The registered name of what response types with tokens are: no grant of the token endpoint, and no choice of its own.
IMPLICIT = "implicit"


def brings_tokens(response_type: str) -> bool:
    """True if tokens of this response type pass through the browser."""
    return not {"id_token", "token"}.isdisjoint(response_type.split())


@dataclass(frozen=True, slots=True)
class Choices:
    """Names, in the order in which plugins offer them; of ``ways`` to sign in also what people know them as."""

    authentication_methods: tuple[str, ...]
    grant_types: tuple[str, ...]
    response_types: tuple[str, ...]
    ways: Mapping[str, str]

    @property
    def of_fields(self) -> Mapping[str, tuple[str, ...]]:
        """The names that each field of an application may hold."""
        return {
            "authentication_method": self.authentication_methods,
            "grant_types": (*self.grant_types, *([IMPLICIT] if any(map(brings_tokens, self.response_types)) else [])),
            "response_types": self.response_types,
        }
