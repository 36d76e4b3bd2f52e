"""GrantType decides who may get which tokens; Authorization is its decision."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, ClassVar, NoReturn

from identity.domain.applications import ApplicationClient
from identity.domain.authorization_codes import PresentedCode
from identity.domain.clients import ServiceUserClient
from identity.domain.organizations import Organization
from identity.domain.tokens import PresentedRefreshToken
from identity.domain.users import ServiceUser, Subject
from identity.provider.context import Context
from identity.provider.errors import InvalidClient
from identity.provider.parameters import Parameters
from identity.provider.single_use import SingleUseCredential


class ClientRequirement(Enum):
    """Whether the token endpoint authenticates the client before it calls the grant. REQUIRED: an application
    registered for the grant type. OR_SERVICE_USER: such an application, or any service user with a secret."""

    REQUIRED = "required"
    OR_SERVICE_USER = "or service user"
    NONE = "none"


def _refuse_client() -> NoReturn:
    raise InvalidClient("client authentication is missing")


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A token request after the endpoint's own checks. ``parameters`` are decoded, and unique except for
    ``repeatable_parameters`` of the grant. ``client`` is set where the grant requires one, or instead ``service_user``
    where one presented its secret. A grant that requires no client calls ``authenticate_client`` for requests that need
    one, before anything else: it returns the application, or raises InvalidClient or InvalidRequest."""

    parameters: Parameters
    client: ApplicationClient | None
    service_user: ServiceUserClient | None = None
    authenticate_client: Callable[[], ApplicationClient] = _refuse_client


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewInput:
    """The requester in a preview: assumed to have proved everything a grant requires. Without a ``client`` no client
    authenticates. ``code`` and ``refresh_token`` come from the grants previewed before."""

    subject: Subject | None
    client: ApplicationClient | None
    requested_scopes: tuple[str, ...]
    code: PresentedCode | None = None
    refresh_token: PresentedRefreshToken | None = None

    @property
    def service_user(self) -> Subject | None:
        """The subject if it is a service user acting for itself."""
        alone = self.client is None and self.subject is not None and isinstance(self.subject.user, ServiceUser)
        return self.subject if alone else None


class PreviewUnsupported(Exception):
    """The grant type does not support previews."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshTokenTerms:
    """Terms of a refresh token in the response: valid until ``ends_at`` at the latest, for ``scope`` at most.
    ``predecessor_id`` is the refresh token that it replaces."""

    ends_at: datetime
    scope: tuple[str, ...]
    predecessor_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingAssertion:
    """A signed assertion for another authorization server, instead of tokens of this service: the type in its header,
    its claims besides those about issuer, subject and time, its longest lifetime, and the scope that it is for."""

    type: str
    audience: str
    lifetime: timedelta
    scope: tuple[str, ...] = ()
    claims: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorization:
    """The decision of a grant, from which tokens are issued.

    ``subject`` is the user the tokens are about, None where a client acts for itself. ``client`` is the application,
    None for a service user; ``client_id`` is the client that tokens name. ``requested_scopes`` are the values of the
    scope.

    ``authenticated_at`` is when the subject last authenticated, ``methods`` how (amr, RFC 8176), ``acr`` the class
    reached if one was requested, ``session_id`` the session. ``key_id``, ``secret_id`` or
    ``federated_credential_id`` ties the tokens to the credential of a service user, so that they end with it,
    ``client_secret_id`` or again ``federated_credential_id`` to that of an application, ``family_id`` to the sign-in
    they come from.
    ``single_use_credential`` is consumed when the tokens are stored.

    With ``includes_id_token`` False the response has no ID token, whatever was granted; ``nonce`` is for the ID
    token. ``refresh_token_terms`` requests a refresh token. ``userinfo_claims`` and ``id_token_claims`` are
    requested besides scopes (OpenID Connect Core §5.5).

    ``resources`` are the APIs that the client named (RFC 8707): the audience is theirs. ``requested_audience``
    narrows the audience (RFC 8707), and ``allowed_audience`` is what it may contain at most. ``ancestors`` are the
    lineages of the access tokens that are exchanged (``AccessToken``), with which the new one ends. No token
    outlives ``ends_at``. ``actors`` are the subjects that act for the subject, the current one first: the claim
    ``act`` (RFC 8693 §4.1). ``impersonator_id`` is the manager who is signed in as the subject, and acts before
    those. ``confirmation`` names the key that the sender of the tokens has to prove (``AccessToken``): until the
    token endpoint binds them, the one that the grant requires. With ``requires_confirmation`` it can be any, but
    there must be one. ``provider_id`` is the identity provider whose assertion starts a family, with which that ends.
    ``assertion`` is issued instead of tokens. ``response_members`` are further members of the token response."""

    subject: Subject | None
    client: ApplicationClient | None
    client_id: str
    requested_scopes: tuple[str, ...]
    authenticated_at: datetime
    key_id: str | None = None
    secret_id: str | None = None
    federated_credential_id: str | None = None
    client_secret_id: str | None = None
    session_id: str | None = None
    nonce: str | None = None
    family_id: str | None = None
    includes_id_token: bool = True
    refresh_token_terms: RefreshTokenTerms | None = None
    single_use_credential: SingleUseCredential | None = None
    methods: tuple[str, ...] = ()
    acr: str = ""
    userinfo_claims: tuple[str, ...] = ()
    id_token_claims: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    requested_audience: tuple[str, ...] = ()
    allowed_audience: tuple[str, ...] | None = None
    ancestors: tuple[str, ...] = ()
    ends_at: datetime | None = None
    actors: tuple[str, ...] = ()
    impersonator_id: str | None = None
    confirmation: str | None = None
    requires_confirmation: bool = False
    provider_id: str | None = None
    assertion: OutgoingAssertion | None = None
    response_members: Mapping[str, Any] = field(default_factory=dict)

    @property
    def organization(self) -> Organization:
        """The organization that the tokens act for: the user's, or the client's."""
        if self.subject is not None:
            return self.subject.organization
        if self.client is None:
            raise ValueError("an authorization is about a user or a client")
        return self.client.organization


class GrantType(ABC):
    """A grant type of the token endpoint. Stateless; one object serves all requests.

    ``parameters`` names the parameters that it reads besides grant_type and scope, ``repeatable_parameters`` those
    of them that may be repeated.

    ``accepts_codes`` says that it redeems the result of a sign-in, so that applications with users get it by
    default. ``issues_refresh_tokens`` says that its responses may contain refresh tokens, and
    ``accepts_refresh_tokens`` that it is of use only beside such a grant. ``requires_confidential_client`` says that
    a public client cannot use it. ``discovery_members`` are what it adds to the discovery document."""

    grant_type: ClassVar[str]
    parameters: ClassVar[frozenset[str]]
    repeatable_parameters: ClassVar[frozenset[str]] = frozenset()
    client_requirement: ClassVar[ClientRequirement]
    accepts_codes: ClassVar[bool] = False
    issues_refresh_tokens: ClassVar[bool] = False
    accepts_refresh_tokens: ClassVar[bool] = False
    requires_confidential_client: ClassVar[bool] = False
    discovery_members: ClassVar[Mapping[str, object]] = {}

    @abstractmethod
    def authorize(self, request: TokenRequest, context: Context) -> Authorization:
        """Decide who may get what. Writes come last. Raises an OAuthError."""

    def preview(self, preview_input: PreviewInput, context: Context) -> Authorization | None:
        """What ``authorize`` would decide if every proof were valid; None if the grant does not apply. Writes nothing.
        The caller checks that the client is registered for the grant type and that everyone is active. Raises
        PreviewUnsupported by default, and the OAuthError of a rule that is violated."""
        raise PreviewUnsupported
