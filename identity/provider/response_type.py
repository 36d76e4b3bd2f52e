"""Response types and response modes: what an authorization response contains, and how it reaches the client."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from identity.domain.applications import ApplicationClient
    from identity.provider.context import Context


class Artifact(StrEnum):
    """A code or token in an authorization response."""

    CODE = "code"
    ID_TOKEN = "id_token"  # noqa: S105 - a word of the protocol
    ACCESS_TOKEN = "token"  # noqa: S105


class ResponseTransport(StrEnum):
    """Where in a request to the client the response is (OAuth 2.0 Multiple Response Types §2.1, Form Post)."""

    QUERY = "query"
    FRAGMENT = "fragment"
    FORM_POST = "form_post"


@dataclass(frozen=True, slots=True)
class ResponseMode:
    """A response mode by its registered name. Without a ``transport`` the response type determines it. ``encode``
    replaces the members of a response to a client; without it they are sent as they are."""

    value: str
    transport: ResponseTransport | None
    encode: "Callable[[ApplicationClient, Context, Mapping[str, Any]], Mapping[str, str]] | None" = None


#: The service's own response modes, by name.
CORE_RESPONSE_MODES: Mapping[str, ResponseMode] = {
    transport.value: ResponseMode(transport.value, transport) for transport in ResponseTransport
}


@dataclass(frozen=True, slots=True)
class ResponseType:
    """A response type by its registered name; its values have no order (OAuth 2.0 Multiple Response Types §3)."""

    value: str
    artifacts: frozenset[Artifact]

    @property
    def values(self) -> frozenset[str]:
        return frozenset(self.value.split())

    @property
    def uses_front_channel(self) -> bool:
        """True if tokens pass through the browser: then query mode is not allowed, and a nonce is required."""
        return bool(self.artifacts & {Artifact.ID_TOKEN, Artifact.ACCESS_TOKEN})
