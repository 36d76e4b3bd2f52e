"""Token exchange (RFC 8693): an application that was shown a person's token gets one to act for them elsewhere."""

from identity.provider.context import Context
from identity.provider.errors import InvalidRequest, InvalidScope, InvalidTarget
from identity.provider.grant import Authorization, ClientRule, Grant, TokenRequest
from identity.provider.parameters import Parameters

GRANT_TYPE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"


class TokenExchange(Grant):
    """The application shows an access token that is meant for it; the new one says that it acts for its subject."""

    grant_type = GRANT_TYPE
    parameters = frozenset({"subject_token", "subject_token_type", "requested_token_type", "resource", "audience"})
    repeatable = frozenset({"resource", "audience"})
    client = ClientRule.REQUIRED

    def authorize(self, request: TokenRequest, context: Context) -> Authorization:
        """The subject of the token, for the application that shows it, for as long as that token lives.

        Raises InvalidRequest, InvalidScope, InvalidTarget.
        """
        parameters, client = request.parameters, request.client
        _check_types(parameters)
        issued = context.services.tokens.find_live(parameters.required("subject_token"))
        if issued is None or client is None or not context.services.tokens.in_audience(issued, client):
            raise InvalidRequest("subject_token is not a live access token that is meant for this application")
        if parameters.several("resource"):
            raise InvalidTarget("name targets by audience", reason="resource is not supported")
        asked = parameters.words("scope") or issued.token.scope
        if not set(asked) <= set(issued.token.scope):
            raise InvalidScope("scope must not be more than that of subject_token")
        return Authorization(
            subject=issued.subject,
            client=client,
            client_id=client.id,
            asked=asked,
            authenticated_at=issued.token.issued_at,
            session_id=issued.token.session_id,
            family_id=issued.token.family_id,
            id_token=False,
            ends_at=issued.token.expires_at,
            targets=parameters.several("audience"),
            actors=(client.id, *issued.token.actors),
            answer={"issued_token_type": ACCESS_TOKEN},
        )


def _check_types(parameters: Parameters) -> None:
    for given, name in (
        (parameters.required("subject_token_type"), "subject_token_type"),
        (parameters.get("requested_token_type", ACCESS_TOKEN), "requested_token_type"),
    ):
        if given != ACCESS_TOKEN:
            raise InvalidRequest(f"{name} must be {ACCESS_TOKEN}")
