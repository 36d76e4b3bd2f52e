"""Grant client_credentials: an application, or a service user with a secret, gets a token for itself (RFC 6749 §4.4).

A token request::

    POST /oauth/v2/token
    Authorization: Basic …
    Content-Type: application/x-www-form-urlencoded

    grant_type=client_credentials&scope=urn%3Aservice%3Aiam%3Aorg%3Aproject%3Aid%3A…%3Aaud
"""

from collections.abc import Iterable
from dataclasses import replace

from identity.api.endpoints import Context, UnauthorizedClient
from identity.api.entities import ApplicationClient, Subject
from identity.api.grants import Authorization, ClientRequirement, GrantType, PreviewInput, Scope, TokenRequest
from identity.api.plugins import hookimpl


class ClientCredentialsGrant(GrantType):
    """No user signs in, so there is no openid scope, ID token or refresh token: the client can request a new token.

    An application's token has no user; a service user's token is about the service user, as with an assertion. Both
    end with the secret or federated credential that obtained them.
    """

    grant_type = "client_credentials"
    parameters = frozenset[str]()
    client_requirement = ClientRequirement.OR_SERVICE_USER
    requires_confidential_client = True

    def authorize(self, request: TokenRequest, context: Context) -> Authorization:
        """The application or service user itself. Raises UnauthorizedClient, InvalidScope."""
        service_user, requested = request.service_user, request.parameters.get_space_delimited("scope")
        if service_user is None:
            return _build_authorization(None, request.client, requested, context)
        authorization = _build_authorization(service_user.subject, None, requested, context)
        return replace(authorization, secret_id=service_user.secret_id)

    def preview(self, preview_input: PreviewInput, context: Context) -> Authorization | None:
        """An application, or a service user with any secret. Raises UnauthorizedClient, InvalidScope."""
        if preview_input.service_user is None and (preview_input.client is None or preview_input.subject is not None):
            return None
        return _build_authorization(
            preview_input.service_user, preview_input.client, preview_input.requested_scopes, context
        )


def _build_authorization(
    subject: Subject | None, client: ApplicationClient | None, requested: tuple[str, ...], context: Context
) -> Authorization:
    """Exactly one of both is given."""
    if client is not None and client.application.is_public:
        raise UnauthorizedClient("a public client has no credentials that could stand for it")
    Scope.require_syntax(requested)
    client_id = subject.user.id if subject is not None else client.id if client is not None else None
    if client_id is None:
        raise ValueError("the token endpoint authenticates the client first")
    return Authorization(
        subject=subject,
        client=client,
        client_id=client_id,
        requested_scopes=requested,
        client_secret_id=None if client is None else client.secret_id,
        federated_credential_id=None if client is None else client.federated_credential_id,
        authenticated_at=context.now,
        includes_id_token=False,
    )


class ClientCredentialsPlugin:
    """The client credentials grant."""

    hookspecs = 1

    @hookimpl
    def identity_grant_types(self) -> Iterable[GrantType]:
        """The client_credentials grant."""
        return [ClientCredentialsGrant()]
