"""Context: what an endpoint or grant uses besides the request."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from identity.provider.protocol_request import Cookie, CookieKind, ProtocolResponse
from identity.provider.request_activity import RequestActivity
from identity.services.container import Services
from identity.settings import Settings

if TYPE_CHECKING:
    from identity.provider.protocol_registry import ProtocolRegistry
    from identity.provider.pyoidc_provider import IdentityProvider
    from identity.provider.redirect_target import RedirectTarget


@dataclass(frozen=True, slots=True)
class Context:
    """All that an endpoint or grant may use besides the request. ``now`` is the time of the whole request. ``settings``
    are the core's, ``protocol`` is what the loaded plugins offer, ``services`` work in the request's transaction.
    ``provider_factory`` creates ``provider``."""

    now: datetime
    settings: Settings
    protocol: "ProtocolRegistry"
    provider_factory: Callable[[], "IdentityProvider"]
    services: Services
    #: Headers that the response gets.
    response_headers: dict[str, str] = field(default_factory=dict)
    #: Where the client waits for the response, once known: it also gets server errors.
    redirect_targets: "list[RedirectTarget]" = field(default_factory=list)
    #: Labels for request metrics by name, such as the grant type of a token request.
    metric_labels: dict[str, str] = field(default_factory=dict)
    #: What the request is about, for figures and the log of its application.
    activity: RequestActivity = field(default_factory=RequestActivity)

    @property
    def provider(self) -> "IdentityProvider":
        """pyoidc's provider for this service, created on first use."""
        return self.provider_factory()

    def redirect_to_page(self, path: str, *cookies: Cookie) -> ProtocolResponse:
        """303 to a path of the login host."""
        return ProtocolResponse.redirect(self.settings.login_url + path, *cookies)

    def store_request(
        self, parameters: Mapping[str, str], *, login_name: str = "", ui_locales: str = ""
    ) -> tuple[str, Cookie]:
        """Store a request until its user has acted: its id, and the cookie that identifies its browser."""
        sign_ins = self.services.sign_ins
        pending, secret = sign_ins.begin(parameters, login_name=login_name, ui_locales=ui_locales)
        return pending.id, Cookie(CookieKind.SIGN_IN, pending.id, secret, sign_ins.lifetime)

    @property
    def issuer(self) -> str:
        return self.settings.issuer_url
