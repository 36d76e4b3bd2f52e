"""Choices: what the loaded plugins offer for applications to be registered with."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Choices:
    """Names, in the order in which plugins offer them."""

    authentication_methods: tuple[str, ...]
    grant_types: tuple[str, ...]
    response_types: tuple[str, ...]

    @property
    def of_fields(self) -> Mapping[str, tuple[str, ...]]:
        """The names that each field of an application may hold."""
        return {
            "authentication_method": self.authentication_methods,
            "grant_types": self.grant_types,
            "response_types": self.response_types,
        }
