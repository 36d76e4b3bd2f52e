"""A grant type: an application gets a token about a service user of its own organization."""

from identity.domain.applications import Client
from identity.domain.users import ServiceUser, Subject
from identity.provider.context import Context
from identity.provider.errors import InvalidGrant
from identity.provider.grant import Authorization, ClientRule, Grant, Supposed, TokenRequest
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
        asked = request.parameters.words("scope")
        user_id = request.parameters.required("service_user")
        subject = context.services.storage.users.find_subject(user_id)
        return _authorization(subject, request.client, asked, context)

    def preview(self, supposed: Supposed, context: Context) -> Authorization | None:
        """The same for a service user and an application that somebody wonders about; None for people."""
        if supposed.subject is None or not isinstance(supposed.subject.user, ServiceUser):
            return None
        return _authorization(supposed.subject, supposed.client, supposed.asked, context)


def _authorization(
    subject: Subject | None, client: Client | None, asked: tuple[str, ...], context: Context
) -> Authorization:
    asked = asked or (OPENID,)
    check_words(asked)
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
