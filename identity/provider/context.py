"""Context: what the protocol works with, beside the request."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from identity.services.container import Services
from identity.settings import Settings

if TYPE_CHECKING:
    from identity.provider.protocol_registry import ProtocolRegistry
    from identity.provider.pyoidc_provider import IdentityProvider
    from identity.provider.redirect_target import RedirectTarget


@dataclass(frozen=True, slots=True)
class Context:
    """All that an endpoint or grant may use beside the request.

    ``now`` is the moment at which all of it happens. ``settings`` are the core's, ``protocol`` is what the loaded
    plugins offer, ``services`` are the use cases, in the request's transaction. ``provider_factory`` makes
    ``provider``.
    """

    now: datetime
    settings: Settings
    protocol: "ProtocolRegistry"
    provider_factory: Callable[[], "IdentityProvider"]
    services: Services
    #: Where a client waits for the answer, once that is known: it is told, too, if something goes wrong on our side.
    redirect_targets: "list[RedirectTarget]" = field(default_factory=list)
    #: What whoever counts requests is told of this one, by name: the grant type of a request for tokens.
    metric_labels: dict[str, str] = field(default_factory=dict)

    @property
    def provider(self) -> "IdentityProvider":
        """pyoidc's provider, wired to this service; made when it is first needed."""
        return self.provider_factory()

    @property
    def issuer(self) -> str:
        """The issuer, as it stands in tokens."""
        return self.settings.issuer_url
