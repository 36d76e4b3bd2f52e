"""Context: what the protocol works with, beside the request."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from identity.services.bundle import Services
from identity.settings import Settings

if TYPE_CHECKING:
    from identity.provider.oidc import IdentityProvider
    from identity.provider.protocol import Protocol
    from identity.provider.return_address import ReturnAddress


@dataclass(frozen=True, slots=True)
class Context:
    """All that an endpoint or grant may use beside the request.

    ``now`` is the moment at which all of it happens. ``settings`` are the core's, ``protocol`` is what the loaded
    plugins offer, ``services`` are the use cases, in the request's transaction. ``open_provider`` makes ``provider``.
    """

    now: datetime
    settings: Settings
    protocol: "Protocol"
    open_provider: Callable[[], "IdentityProvider"]
    services: Services
    #: Where a client waits for the answer, once that is known: it is told, too, if something goes wrong on our side.
    waiting: "list[ReturnAddress]" = field(default_factory=list)
    #: What whoever counts requests is told of this one, by name: the grant type of a request for tokens.
    told: dict[str, str] = field(default_factory=dict)

    @property
    def provider(self) -> "IdentityProvider":
        """pyoidc's provider, wired to this service; made when it is first needed."""
        return self.open_provider()

    @property
    def issuer(self) -> str:
        """The issuer, as it stands in tokens."""
        return self.settings.issuer_url
