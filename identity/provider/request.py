"""What goes into an endpoint and what comes out, free of any web framework."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from identity.provider.errors import InvalidRequest
from identity.provider.parameters import Parameters
from identity.services.bundle import Services
from identity.settings import Settings

if TYPE_CHECKING:
    from identity.provider.oidc import IdentityProvider
    from identity.provider.protocol import Protocol

NO_STORE: Mapping[str, str] = {"Cache-Control": "no-store", "Pragma": "no-cache"}


@dataclass(frozen=True, slots=True)
class ProtocolRequest:
    """An HTTP request as the protocol sees it; ``body`` is already limited in size."""

    method: str
    query: bytes
    body: bytes
    content_type: str
    authorization: str | None
    if_none_match: str | None = None

    def form(self) -> Parameters:
        """The parameters of a form-encoded body. Raises InvalidRequest, also for another content type."""
        if self.content_type != "application/x-www-form-urlencoded":
            raise InvalidRequest("the body must be application/x-www-form-urlencoded")
        return Parameters.parse(self.body)


@dataclass(frozen=True, slots=True)
class ProtocolResponse:
    """An HTTP answer."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=lambda: NO_STORE)


@dataclass(frozen=True, slots=True)
class Context:
    """All that an endpoint or grant may use beside the request."""

    now: datetime
    settings: Settings
    protocol: "Protocol"
    provider: "IdentityProvider"
    services: Services

    @property
    def issuer(self) -> str:
        """The issuer, as it stands in tokens."""
        return self.settings.issuer_url
