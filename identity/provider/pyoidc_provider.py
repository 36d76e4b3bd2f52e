"""IdentityProvider: pyoidc's provider, adapted to this service.

Used from pyoidc: messages, the client authentication seam, redirect URIs and signed ID tokens. Every other inherited
method would bypass our storage and checks, so it is blocked. The table lists what is allowed, so that a method added
by a new release of pyoidc is blocked, too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NoReturn

from oic.exception import ParameterError, PyoidcError
from oic.oic import Server
from oic.oic.provider import Provider
from oic.utils.clientdb import BaseClientDatabase
from oic.utils.keyio import KeyJar
from oic.utils.settings import OicProviderSettings

from identity.crypto.rsa_keys import RsaPrivateKey
from identity.domain.applications import ApplicationClient
from identity.domain.clients import Client
from identity.provider.context import Context
from identity.provider.errors import InvalidRequest, UntrustedRedirect
from identity.provider.parameters import Parameters
from identity.provider.protocol_request import ProtocolRequest
from identity.provider.pyoidc_messages import (
    AuthorizationRequestMessage,
    IdToken,
    IdTokenSigningKey,
    MessageFactory,
    ProviderConfigurationResponse,
)
from identity.provider.redirect_target import redact_uri

#: Inherited methods that are not blocked.
ALLOWED_METHODS = frozenset({"build_jwx_def", "default_capabilities", "get_redirect_uri", "id_token_as_signed_jwt"})

ClientAuthenticator = Callable[[ProtocolRequest, Parameters, Context], Client]


class ForbiddenCall(Exception):
    """Inherited code tried to act without this service's storage and checks."""


class DisabledSessionStore:
    """Replaces pyoidc's session database; every access raises ForbiddenCall."""

    def __getattr__(self, name: str) -> NoReturn:
        raise ForbiddenCall(f"pyoidc's session database is not used ({name})")

    def __getitem__(self, key: object) -> NoReturn:
        raise ForbiddenCall("pyoidc's session database is not used")

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise ForbiddenCall("pyoidc's session database is not used")

    def __contains__(self, key: object) -> NoReturn:
        raise ForbiddenCall("pyoidc's session database is not used")


class DisabledClientDatabase(BaseClientDatabase):  # type: ignore[misc]
    """Replaces pyoidc's client database, whose type it checks; every access raises ForbiddenCall."""

    def __getitem__(self, key: str) -> NoReturn:
        raise ForbiddenCall("pyoidc's client database is not used")

    def __setitem__(self, key: str, value: object) -> NoReturn:
        raise ForbiddenCall("pyoidc's client database is not used")

    def __delitem__(self, key: str) -> NoReturn:
        raise ForbiddenCall("pyoidc's client database is not used")

    def keys(self) -> NoReturn:
        raise ForbiddenCall("pyoidc's client database is not used")

    def items(self) -> NoReturn:
        raise ForbiddenCall("pyoidc's client database is not used")


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


class _Redirect(dict[str, str]):
    """The parameters, with the client whose redirect URI is requested."""

    def __init__(self, parameters: Parameters, client: ApplicationClient) -> None:
        super().__init__(parameters)
        self.client = client


@dataclass(frozen=True, slots=True, kw_only=True)
class IdTokenContent:
    """Claims of an ID token besides the issuer (OpenID Connect Core §2)."""

    subject: str
    client_id: str
    issued_at: datetime
    lifetime: timedelta
    authenticated_at: datetime | None = None
    nonce: str | None = None
    claims: Mapping[str, Any]


class IdentityProvider(Provider):  # type: ignore[misc]
    """One per process, without state between requests; the signing key is an argument."""

    def __init__(
        self,
        issuer: str,
        *,
        base_url: str,
        capabilities: Mapping[str, Any],
        client_authn: ClientAuthenticator,
    ) -> None:
        settings = ProviderSettings()
        self._capabilities = dict(capabilities)
        # All providers of a process share the inherited list, and each extends it.
        self.endp: list[object] = []
        super().__init__(
            issuer,
            DisabledSessionStore(),
            DisabledClientDatabase(),
            None,
            None,
            None,
            client_authn,
            keyjar=KeyJar(),
            hostname="identity",
            baseurl=base_url,
            message_factory=MessageFactory,
            settings=settings,
        )
        self.server = IdTokenServer(keyjar=self.keyjar, message_factory=MessageFactory, settings=settings)
        self.endp.clear()
        # pyoidc generates a cookie seed and key; no cookie is made with them.
        self.seed, self.symkey = b"", None

    def provider_features(self, provider_config: Any = None) -> ProviderConfigurationResponse:
        """What this service offers, not what pyoidc could do."""
        return ProviderConfigurationResponse(**self._capabilities)

    def authorization_request(self, parameters: Parameters) -> AuthorizationRequestMessage:
        """The parameters as pyoidc's message, with lists parsed. Raises InvalidRequest."""
        try:
            message: AuthorizationRequestMessage = AuthorizationRequestMessage().from_dict(dict(parameters))
        except (PyoidcError, ValueError, TypeError, KeyError):
            raise InvalidRequest("the request holds a value of a wrong form") from None
        return message

    def redirect_uri(self, parameters: Parameters, client: ApplicationClient) -> str:
        """The redirect URI if it is registered for the client. Raises UntrustedRedirect."""
        try:
            uri: str = self.get_redirect_uri(_Redirect(parameters, client))
        except ParameterError:
            raise UntrustedRedirect("redirect_uri is missing", application=client.application.name) from None
        return uri

    def _verify_redirect_uri(self, areq: "_Redirect") -> None:
        """String equality with a registered value, instead of pyoidc's comparison of decoded parts."""
        application, uri = areq.client.application, areq["redirect_uri"]
        if not application.has_redirect_uri(uri):
            raise UntrustedRedirect(
                "redirect_uri is not registered for this application",
                application=application.name,
                sent=redact_uri(uri),
                development=application.development,
            )

    def authenticate(self, request: ProtocolRequest, parameters: Parameters, context: Context) -> Client:
        """Authenticate the client through pyoidc's ``client_authn`` seam. Raises OAuthError."""
        party: Client = self.client_authn(request, parameters, context)
        return party

    def id_token(self, content: IdTokenContent, *, key: tuple[str, RsaPrivateKey]) -> str:
        claims = {**content.claims, "azp": content.client_id}
        acr = {"acr": claims.pop("acr")} if "acr" in claims else {}
        if content.authenticated_at is not None:
            claims["auth_time"] = int(content.authenticated_at.timestamp())
        if content.nonce is not None:
            claims["nonce"] = content.nonce
        iat = int(content.issued_at.timestamp())
        exp = iat + int(content.lifetime.total_seconds())
        session = dict(sub=content.subject, aud=[content.client_id], exp=exp, **acr, iat=iat, **claims)
        signed: str = self.id_token_as_signed_jwt(session, alg="RS256", keys=IdTokenSigningKey(*key))
        return signed


def _forbidden_method(name: str) -> Callable[..., NoReturn]:
    def refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
        raise ForbiddenCall(f"{name} of pyoidc is not used")

    refuse.__name__ = name
    return refuse


def blocked_methods() -> frozenset[str]:
    """Names of all blocked methods that IdentityProvider inherits."""
    names = {name for kind in Provider.__mro__ if kind is not object for name in vars(kind)}
    return frozenset(
        name
        for name in names
        if not name.startswith("__") and name not in ALLOWED_METHODS and callable(getattr(Provider, name, None))
    )


for _name in blocked_methods() - vars(IdentityProvider).keys():
    setattr(IdentityProvider, _name, _forbidden_method(_name))
