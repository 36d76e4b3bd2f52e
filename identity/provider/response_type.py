"""ResponseType: the artifacts of an authorization response."""

from dataclasses import dataclass
from enum import StrEnum


class Artifact(StrEnum):
    """A code or token in an authorization response."""

    CODE = "code"
    ID_TOKEN = "id_token"  # noqa: S105 - a word of the protocol
    ACCESS_TOKEN = "token"  # noqa: S105


class ResponseMode(StrEnum):
    """How an authorization response reaches the client (OAuth 2.0 Multiple Response Types §2.1, Form Post)."""

    QUERY = "query"
    FRAGMENT = "fragment"
    FORM_POST = "form_post"


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
