"""What the loaded plugins offer, as far as services need it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from identity.domain.organizations import Organization
from identity.domain.users import Subject

#: Whether a user, given with the services, could sign in by a method while holding a role at the instance.
HasSignInMethod = Callable[[Subject, Any], bool]

#: The registered name for response types with tokens: neither a grant of the token endpoint nor a choice of its own.
IMPLICIT = "implicit"


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantTypeCapability:
    """See ``identity.provider.grant_type.GrantType``."""

    accepts_codes: bool = False
    issues_refresh_tokens: bool = False
    accepts_refresh_tokens: bool = False
    requires_confidential_client: bool = False
    #: Service users may use it, too: without a person.
    accepts_service_users: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseTypeCapability:
    """What a response type returns: only a code, or tokens that pass through the browser."""

    is_code_only: bool = False
    uses_front_channel: bool = False


class DirectoryCapability(Protocol):
    """See ``identity.provider.directory.Directory``."""

    def serves_organization(self, organization: Organization) -> bool: ...


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Names, in the order of the plugins; ``sign_in_methods`` also have labels.

    ``passwordless_factors`` are the methods that replace a password, ``federated_methods`` those of other identity
    providers, ``second_factors`` the factors that count beside a password, and ``mail_factors`` those of them that
    need a mailbox. ``sign_in_method_checks`` tell for methods of plugins, each with its factor, whether a user has
    set it up. ``directories`` are by name."""

    authentication_methods: tuple[str, ...]
    grants_by_type: Mapping[str, GrantTypeCapability]
    responses_by_type: Mapping[str, ResponseTypeCapability]
    sign_in_methods: Mapping[str, str]
    passwordless_factors: frozenset[str] = frozenset()
    federated_methods: frozenset[str] = frozenset()
    second_factors: frozenset[str] = frozenset()
    mail_factors: frozenset[str] = frozenset()
    sign_in_method_checks: tuple[tuple[str, HasSignInMethod], ...] = ()
    directories: Mapping[str, DirectoryCapability] = field(default_factory=dict)
    sender_constraints: tuple[str, ...] = ()

    @property
    def grant_types(self) -> tuple[str, ...]:
        return tuple(self.grants_by_type)

    @property
    def response_types(self) -> tuple[str, ...]:
        return tuple(self.responses_by_type)

    @property
    def application_field_values(self) -> Mapping[str, tuple[str, ...]]:
        """The values that each field of an application may have."""
        return {
            "authentication_method": self.authentication_methods,
            "grant_types": (
                *self.grant_types,
                *([IMPLICIT] if self.uses_front_channel(self.responses_by_type) else []),
            ),
            "response_types": self.response_types,
            "required_sender_constraint": self.sender_constraints,
        }

    def uses_front_channel(self, response_types: Iterable[str]) -> bool:
        """True if one of them returns tokens through the browser."""
        return any(
            self.responses_by_type[response_type].uses_front_channel
            for response_type in response_types
            if response_type in self.responses_by_type
        )

    def select_grant_types(self, which: Callable[[GrantTypeCapability], bool]) -> frozenset[str]:
        """The names of the grants that match."""
        return frozenset(name for name, capability in self.grants_by_type.items() if which(capability))
