"""A grant type: an application gets a token about a service user of its own organization."""

from identity.domain.users import ServiceUser
from identity.provider.errors import InvalidGrant
from identity.provider.grant import Authorization, ClientRule, Grant, TokenRequest
from identity.provider.request import Context
from identity.provider.scope import OPENID, check_words

GRANT_TYPE = "urn:example:grant-type:delegation"

#: One text for every refusal: an application does not learn who exists elsewhere.
REFUSED = "the application may not act for this service user"


class Delegation(Grant):
    """The application authenticates; ``service_user`` names the service user by id."""

    grant_type = GRANT_TYPE
    parameters = frozenset({"service_user"})
    client = ClientRule.REQUIRED

    def authorize(self, request: TokenRequest, context: Context) -> Authorization:
        """The service user, for the application that asks. Raises InvalidRequest, InvalidScope, InvalidGrant."""
        asked = request.parameters.words("scope") or (OPENID,)
        user_id = request.parameters.required("service_user")
        check_words(asked)
        client = request.client
        subject = context.services.storage.users.find_subject(user_id)
        if (
            client is None
            or subject is None
            or not subject.active
            or not isinstance(subject.user, ServiceUser)
            or subject.organization.id != client.organization.id
        ):
            raise InvalidGrant(REFUSED)
        return Authorization(
            subject=subject,
            client=client,
            client_id=client.id,
            asked=asked,
            authenticated_at=context.now,
        )
