"""Choices: what the loaded plugins offer for applications to be registered with."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from identity.domain.users import Subject

#: Whether a person, given with the services, could sign in by a way while holding a role at the instance.
HasSignInMethod = Callable[[Subject, Any], bool]

#: The registered name of what response types with tokens are: no grant of the token endpoint, and no choice of its own.
IMPLICIT = "implicit"


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantTypeCapability:
    """What a grant type says of itself; see ``identity.provider.grant_type.GrantType``."""

    accepts_codes: bool = False
    issues_refresh_tokens: bool = False
    accepts_refresh_tokens: bool = False
    requires_confidential_client: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseTypeCapability:
    """What a response type brings: a code and nothing else, or tokens that pass through the browser."""

    is_code_only: bool = False
    uses_front_channel: bool = False


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Names, in the order in which plugins offer them; of ``sign_in_methods`` to sign in also what people know them as.

    Of the ways ``passwordless_factors`` names the factors that take the place of a password, ``federated_methods``
    those that lead to somebody else who knows people, ``second_factors`` the factors that count beside a password here,
    and ``mail_factors`` those of them that take a mailbox. ``sign_in_method_checks`` tells of ways that the core does
    not know itself, each with its factor, whether a person has it.
    """

    authentication_methods: tuple[str, ...]
    grants_by_type: Mapping[str, GrantTypeCapability]
    responses_by_type: Mapping[str, ResponseTypeCapability]
    sign_in_methods: Mapping[str, str]
    passwordless_factors: frozenset[str] = frozenset()
    federated_methods: frozenset[str] = frozenset()
    second_factors: frozenset[str] = frozenset()
    mail_factors: frozenset[str] = frozenset()
    sign_in_method_checks: tuple[tuple[str, HasSignInMethod], ...] = ()

    @property
    def grant_types(self) -> tuple[str, ...]:
        """The names of the grants."""
        return tuple(self.grants_by_type)

    @property
    def response_types(self) -> tuple[str, ...]:
        """The names of the response types."""
        return tuple(self.responses_by_type)

    @property
    def application_field_values(self) -> Mapping[str, tuple[str, ...]]:
        """The names that each field of an application may hold."""
        return {
            "authentication_method": self.authentication_methods,
            "grant_types": (
                *self.grant_types,
                *([IMPLICIT] if self.uses_front_channel(self.responses_by_type) else []),
            ),
            "response_types": self.response_types,
        }

    def uses_front_channel(self, response_types: Iterable[str]) -> bool:
        """True if tokens of one of them pass through the browser."""
        return any(
            self.responses_by_type[response_type].uses_front_channel
            for response_type in response_types
            if response_type in self.responses_by_type
        )

    def select_grant_types(self, which: Callable[[GrantTypeCapability], bool]) -> frozenset[str]:
        """The names of those grants."""
        return frozenset(
            name for name, grant_type_capability in self.grants_by_type.items() if which(grant_type_capability)
        )
