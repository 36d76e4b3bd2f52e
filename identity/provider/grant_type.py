"""Grant: answers one question, who may get what; and Authorization, its answer."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, ClassVar

from identity.domain.applications import ApplicationClient
from identity.domain.authorization_codes import PresentedCode
from identity.domain.clients import ServiceUserClient
from identity.domain.organizations import Organization
from identity.domain.tokens import PresentedRefreshToken
from identity.domain.users import ServiceUser, Subject
from identity.provider.context import Context
from identity.provider.parameters import Parameters
from identity.provider.single_use import SingleUseCredential


class ClientRequirement(Enum):
    """Whether the token endpoint authenticates the client before it asks the grant.

    REQUIRED means an application that is registered for the grant type; OR_SERVICE_USER such an application, or any
    service user that has a secret.
    """

    REQUIRED = "required"
    OR_SERVICE_USER = "or service user"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A token request after the endpoint's own checks.

    ``parameters`` are clean: decoded, each at most once but for those that the grant names. ``client`` is set where the
    grant requires one, or in its place ``service_user`` where one showed its secret.
    """

    parameters: Parameters
    client: ApplicationClient | None
    service_user: ServiceUserClient | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewInput:
    """Who would ask, in a preview: taken to have proved all that a grant wants to see.

    Without a ``client`` nobody authenticates as one. ``code`` and ``refresh_token`` are what the ways before brought.
    """

    subject: Subject | None
    client: ApplicationClient | None
    requested_scopes: tuple[str, ...]
    code: PresentedCode | None = None
    refresh_token: PresentedRefreshToken | None = None

    @property
    def service_user(self) -> Subject | None:
        """The subject, if it is a service user that asks for itself."""
        alone = self.client is None and self.subject is not None and isinstance(self.subject.user, ServiceUser)
        return self.subject if alone else None


class PreviewUnsupported(Exception):
    """A grant does not tell what it would authorize."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshTokenTerms:
    """That an answer carries a refresh token: good until ``ends_at`` at the latest, for ``scope`` at most.

    ``predecessor_id`` is the refresh token that it takes the place of.
    """

    ends_at: datetime
    scope: tuple[str, ...]
    predecessor_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorization:
    """What a grant has established; issuing turns it into tokens.

    ``subject`` is the user the tokens are about, None where a client acts for itself. ``client`` is the application,
    None for a service user; ``client_id`` is what tokens name as their client. ``requested_scopes`` are the words of
    the scope.

    ``authenticated_at`` is when the subject last proved to be it, ``methods`` how (RFC 8176), ``acr`` what that amounts
    to where a class was asked for, ``session_id`` in which session. ``key_id`` or ``secret_id`` ties the tokens to what
    a service user showed, so that they end with it, ``client_secret_id`` an application's own to what that showed,
    ``family_id`` to the sign-in they come from. ``single_use_credential`` is used up when they are recorded.

    Without ``includes_id_token`` the answer has none, whatever was granted; ``nonce`` stands in it.
    ``refresh_token_terms`` asks for a refresh token. ``userinfo_claims`` and ``id_token_claims`` are asked for beside
    scopes (OpenID Connect Core §5.5).

    ``requested_audience`` narrow the audience (RFC 8707). No token outlives ``ends_at``. ``actors`` are the subjects of
    those who act for the subject, the present one first: the claim ``act`` (RFC 8693 §4.1). ``response_members`` holds
    further members of the token endpoint's answer.
    """

    subject: Subject | None
    client: ApplicationClient | None
    client_id: str
    requested_scopes: tuple[str, ...]
    authenticated_at: datetime
    key_id: str | None = None
    secret_id: str | None = None
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
    requested_audience: tuple[str, ...] = ()
    ends_at: datetime | None = None
    actors: tuple[str, ...] = ()
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

    ``parameters`` names the parameters that it reads besides grant_type and scope, ``repeatable_parameters`` those of
    them that may be given more than once.

    ``accepts_codes`` says that it exchanges what a sign-in hands over, so that applications of people use it unless
    they are registered otherwise. ``issues_refresh_tokens`` says that its answers may carry refresh tokens, and
    ``accepts_refresh_tokens`` that it is of use only beside such a grant. ``requires_confidential_client`` says that a
    public client cannot use it.
    """

    grant_type: ClassVar[str]
    parameters: ClassVar[frozenset[str]]
    repeatable_parameters: ClassVar[frozenset[str]] = frozenset()
    client_requirement: ClassVar[ClientRequirement]
    accepts_codes: ClassVar[bool] = False
    issues_refresh_tokens: ClassVar[bool] = False
    accepts_refresh_tokens: ClassVar[bool] = False
    requires_confidential_client: ClassVar[bool] = False

    @abstractmethod
    def authorize(self, request: TokenRequest, context: Context) -> Authorization:
        """Establish who may get what. Writes come last. Raises an OAuthError."""

    def preview(self, preview_input: PreviewInput, context: Context) -> Authorization | None:
        """What ``authorize`` would establish if all were proved; None if the grant is not for these. Writes nothing.

        Whether the client is registered for the grant type, and everybody active, is asked elsewhere. Raises
        PreviewUnsupported if the grant cannot tell, as it does here, and the OAuthError of a rule that stands against
        it.
        """
        raise PreviewUnsupported
