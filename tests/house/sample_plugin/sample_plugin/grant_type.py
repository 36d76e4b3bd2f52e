"""A grant type: an application obtains a token for a service user of its own organization."""

from identity.api.endpoints import Context, InvalidGrant
from identity.api.entities import ApplicationClient, ServiceUser, Subject
from identity.api.grants import Authorization, ClientRequirement, GrantType, PreviewInput, Scope, TokenRequest

GRANT_TYPE = "urn:example:grant-type:delegation"

#: The same text for every refusal, so that an application cannot find out which service users exist elsewhere.
REFUSED = "the application may not act for this service user"


class Delegation(GrantType):
    """The client authenticates; the parameter ``service_user`` is the service user's id."""

    grant_type = GRANT_TYPE
    parameters = frozenset({"service_user"})
    client_requirement = ClientRequirement.REQUIRED

    def authorize(self, request: TokenRequest, context: Context) -> Authorization:
        """Authorize the client for the service user. Raises InvalidRequest, InvalidScope or InvalidGrant."""
        scope = request.parameters.get_space_delimited("scope")
        user_id = request.parameters.require_value("service_user")
        subject = context.services.storage.users.find_subject(user_id)
        return _authorization(subject, request.client, scope, context)

    def preview(self, preview_input: PreviewInput, context: Context) -> Authorization | None:
        """The result for a service user and an application in the token preview; None for human users."""
        if preview_input.subject is None or not isinstance(preview_input.subject.user, ServiceUser):
            return None
        return _authorization(preview_input.subject, preview_input.client, preview_input.requested_scopes, context)


def _authorization(
    subject: Subject | None, client: ApplicationClient | None, requested_scope: tuple[str, ...], context: Context
) -> Authorization:
    requested_scope = requested_scope or (Scope.OPENID,)
    Scope.require_openid(requested_scope)
    if (
        client is None
        or subject is None
        or not subject.is_active
        or not isinstance(subject.user, ServiceUser)
        or subject.organization.id != client.organization.id
    ):
        raise InvalidGrant(REFUSED)
    return Authorization(
        subject=subject,
        client=client,
        client_id=client.id,
        requested_scopes=requested_scope,
        authenticated_at=context.now,
    )
