"""IdentityProvider: pyoidc's provider, adapted to this service.

Used from pyoidc: messages, the client authentication seam and signed ID tokens. Every other inherited method would
bypass our storage and checks, so it is blocked. The table lists what is allowed, so that a method added
by a new release of pyoidc is blocked, too.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, NoReturn

from oic.exception import PyoidcError
from oic.oic import Server
from oic.oic.provider import Provider
from oic.utils.clientdb import BaseClientDatabase
from oic.utils.keyio import KeyJar
from oic.utils.settings import OicProviderSettings

from identity.crypto.signature_keys import ExternalKey, PrivateKey
from identity.domain.applications import ApplicationClient
from identity.domain.clients import Client
from identity.provider.client_authentication import require_application
from identity.provider.context import Context
from identity.provider.errors import InvalidRequest
from identity.provider.parameters import Parameters
from identity.provider.protocol_request import ProtocolRequest, ProtocolResponse
from identity.provider.pyoidc_messages import (
    AuthorizationRequestMessage,
    IdToken,
    IdTokenSigningKey,
    TokenIntrospectionResponse,
)

#: Inherited methods that are not blocked.
ALLOWED_METHODS = frozenset({"build_jwx_def", "default_capabilities", "id_token_as_signed_jwt"})

ClientAuthenticator = Callable[[ProtocolRequest, Parameters, Context], Client]


class ForbiddenCall(Exception):
    """Inherited code tried to act without this service's storage and checks."""


def _block(name: str) -> Callable[..., NoReturn]:
    def blocked(*_: object, **__: object) -> NoReturn:
        raise ForbiddenCall(f"{name} of pyoidc is not used")

    return blocked


class DisabledDatabase(BaseClientDatabase):  # type: ignore[misc]
    """Replaces pyoidc's databases of sessions and clients; every access raises ForbiddenCall."""

    __getitem__ = __setitem__ = __delitem__ = __contains__ = keys = items = __getattr__ = _block("a database")


class ProviderSettings(OicProviderSettings):  # type: ignore[misc]
    """pyoidc's settings, except that they do not read TIMEOUT and the like from the environment."""

    @classmethod
    def settings_customise_sources(cls, settings_cls: Any, init_settings: Any, *_: Any, **__: Any) -> tuple[Any, ...]:
        """Only the constructor's arguments."""
        return (init_settings,)


class IdTokenServer(Server):  # type: ignore[misc]
    """Creates ID tokens as a message that signs through our crypto layer."""

    def make_id_token(self, session: Mapping[str, Any], loa: str = "", issuer: str = "", *_: object) -> IdToken:
        """Only the session's values: pyoidc would add times of its own clock, and claims from its database."""
        return IdToken(iss=issuer, **session)


class IdentityProvider(Provider):  # type: ignore[misc]
    """One per process, without state between requests; the signing key is an argument."""

    def __init__(
        self,
        issuer: str,
        *,
        base_url: str,
        client_authn: ClientAuthenticator,
    ) -> None:
        settings = ProviderSettings()
        # All providers of a process share the inherited list, and each extends it.
        self.endp: list[object] = []
        super().__init__(
            issuer,
            DisabledDatabase(),
            DisabledDatabase(),
            None,
            None,
            None,
            client_authn,
            keyjar=KeyJar(),
            hostname="identity",
            baseurl=base_url,
            settings=settings,
        )
        self.server = IdTokenServer(keyjar=self.keyjar, settings=settings)
        self.endp.clear()
        # pyoidc generates a cookie seed and key; no cookie is made with them.
        self.seed, self.symkey = b"", None

    def provider_features(self, provider_config: Any = None) -> dict[str, Any]:
        """Nothing of what pyoidc could do: ``identity.provider.discovery`` describes the service."""
        return {}

    def authorization_request(self, parameters: Parameters) -> AuthorizationRequestMessage:
        """The parameters as pyoidc's message, with lists parsed. Raises InvalidRequest."""
        try:
            message: AuthorizationRequestMessage = AuthorizationRequestMessage().from_dict(dict(parameters))
        except (PyoidcError, ValueError, TypeError, KeyError):
            raise InvalidRequest("the request holds a value of a wrong form") from None
        return message

    def authenticate(self, request: ProtocolRequest, parameters: Parameters, context: Context) -> Client:
        """Authenticate the client through pyoidc's ``client_authn`` seam. Raises OAuthError."""
        party: Client = self.client_authn(request, parameters, context)
        return party

    def authenticate_application(
        self, request: ProtocolRequest, parameters: Parameters, context: Context
    ) -> ApplicationClient:
        """Authenticate the client, which must be an application with credentials. Raises OAuthError."""
        return require_application(self.authenticate(request, parameters, context))

    def introspection_response(self, members: Mapping[str, Any]) -> ProtocolResponse:
        """The answer about a live token (RFC 7662 §2.2)."""
        return ProtocolResponse.from_json(TokenIntrospectionResponse(**members).to_json())

    def id_token(
        self,
        *,
        key: tuple[str, PrivateKey | ExternalKey],
        subject: str,
        client_id: str,
        issued_at: datetime,
        lifetime: timedelta,
        authenticated_at: datetime | None = None,
        nonce: str | None = None,
        claims: Mapping[str, Any],
    ) -> str:
        """A signed ID token (OpenID Connect Core §2)."""
        claims = {**claims, "azp": client_id}
        acr = {"acr": claims.pop("acr")} if "acr" in claims else {}
        if authenticated_at is not None:
            claims["auth_time"] = int(authenticated_at.timestamp())
        if nonce is not None:
            claims["nonce"] = nonce
        iat = int(issued_at.timestamp())
        session = dict(sub=subject, aud=[client_id], exp=iat + int(lifetime.total_seconds()), **acr, iat=iat, **claims)
        signed: str = self.id_token_as_signed_jwt(session, alg=key[1].algorithm, keys=IdTokenSigningKey(*key))
        return signed


def blocked_methods() -> frozenset[str]:
    """All methods that pyoidc's provider has, except those that are allowed."""
    return frozenset(
        name
        for name in dir(Provider)
        if not name.startswith("__") and name not in ALLOWED_METHODS and callable(getattr(Provider, name))
    )


for _name in blocked_methods() - vars(IdentityProvider).keys():
    setattr(IdentityProvider, _name, _block(_name))
