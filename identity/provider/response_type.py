"""ResponseType: what the authorization endpoint answers with; data, not code."""

from dataclasses import dataclass
from enum import StrEnum


class Artifact(StrEnum):
    """What an authorization answer can carry."""

    CODE = "code"
    ID_TOKEN = "id_token"  # noqa: S105 - a word of the protocol
    ACCESS_TOKEN = "token"  # noqa: S105


class ResponseMode(StrEnum):
    """How an authorization answer reaches the client (OAuth 2.0 Multiple Response Types §2.1, Form Post)."""

    QUERY = "query"
    FRAGMENT = "fragment"
    FORM_POST = "form_post"


@dataclass(frozen=True, slots=True)
class ResponseType:
    """A response type by its registered name; its words have no order (OAuth 2.0 Multiple Response Types §3)."""

    value: str
    artifacts: frozenset[Artifact]

    @property
    def values(self) -> frozenset[str]:
        """The words of the name."""
        return frozenset(self.value.split())

    @property
    def uses_front_channel(self) -> bool:
        """True if tokens pass through the browser: then they never stand in a query, and a nonce is needed."""
        return bool(self.artifacts & {Artifact.ID_TOKEN, Artifact.ACCESS_TOKEN})
