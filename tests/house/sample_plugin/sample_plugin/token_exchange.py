"""Token exchange, in little (RFC 8693): an application exchanges a user's token for one to act on the user's behalf."""

from identity.api.endpoints import Context, InvalidRequest, InvalidScope, InvalidTarget, Parameters
from identity.api.grants import Authorization, ClientRequirement, GrantType, TokenRequest

GRANT_TYPE = "urn:example:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"


class TokenExchange(GrantType):
    """Takes an access token whose audience includes the client; the new token names the client as the actor."""

    grant_type = GRANT_TYPE
    parameters = frozenset({"subject_token", "subject_token_type", "requested_token_type", "resource", "audience"})
    repeatable_parameters = frozenset({"resource", "audience"})
    client_requirement = ClientRequirement.REQUIRED

    def authorize(self, request: TokenRequest, context: Context) -> Authorization:
        """Authorize the client for the subject of the token, at most until that token expires.

        Raises InvalidRequest, InvalidScope or InvalidTarget.
        """
        parameters, client = request.parameters, request.client
        _check_types(parameters)
        issued = context.services.tokens.find_live_access_token(parameters.require_value("subject_token"))
        if issued is None or client is None or not context.services.tokens.is_in_audience(issued, client):
            raise InvalidRequest("subject_token is not a live access token that is meant for this application")
        if parameters.get_values("resource"):
            raise InvalidTarget("name targets by audience", reason="resource is not supported")
        scope = parameters.get_space_delimited("scope") or issued.token.scope
        if not set(scope) <= set(issued.token.scope):
            raise InvalidScope("scope must not be more than that of subject_token")
        return Authorization(
            subject=issued.subject,
            client=client,
            client_id=client.id,
            requested_scopes=scope,
            authenticated_at=issued.token.issued_at,
            session_id=issued.token.session_id,
            family_id=issued.token.family_id,
            includes_id_token=False,
            ends_at=issued.token.expires_at,
            requested_audience=parameters.get_values("audience"),
            actors=(client.id, *issued.token.actors),
            response_members={"issued_token_type": ACCESS_TOKEN},
        )


def _check_types(parameters: Parameters) -> None:
    for token_type, name in (
        (parameters.require_value("subject_token_type"), "subject_token_type"),
        (parameters.get("requested_token_type", ACCESS_TOKEN), "requested_token_type"),
    ):
        if token_type != ACCESS_TOKEN:
            raise InvalidRequest(f"{name} must be {ACCESS_TOKEN}")
