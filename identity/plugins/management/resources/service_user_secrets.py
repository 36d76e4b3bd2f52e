"""Secrets of service users: for programs that cannot sign."""

from identity.domain import service_user_secrets
from identity.http import route_contexts
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import Representation, representation_fields


@representation_fields(service_user_secrets.ServiceUserSecret, without={"user_id"})
class ServiceUserSecretRepresentation(Representation):
    """A live secret, without the secret itself."""


class NewServiceUserSecretRepresentation(ServiceUserSecretRepresentation):
    """A new secret, which is shown this once; the client id is the service user's id."""

    client_secret: str


def _add_secret(call: OperationCall) -> NewServiceUserSecretRepresentation:
    added, text = call.services.service_users.add_secret(call.entity.id, principal=call.principal)
    return NewServiceUserSecretRepresentation.from_value(added, client_secret=text)


_SECRETS = ApiResource(
    kind="service_user_secret",
    representation=ServiceUserSecretRepresentation,
    path="/service-users/{service_user}/secrets/{secret}",
    context_factory=route_contexts.service_user_context,
    permission_subject="service_user",
    service="service_users",
    delete_permission="write",
)

OPERATIONS = (
    _SECRETS.list_operation(
        "Lists the live secrets of a service user, oldest first, without the secrets themselves.",
        lambda call: call.services.service_users.list_secrets(call.entity.id),
        paged=False,
    ),
    _SECRETS.create_operation(
        "add",
        "Adds a secret to a service user; the answer carries it, once.",
        None,
        _add_secret,
        description="Two may be live, so that one can be replaced without a gap.",
        representation=NewServiceUserSecretRepresentation,
    ),
    _SECRETS.get_operation(
        "Shows when a secret was made and last used.",
        lambda call: _SECRETS.find_child(call, call.services.service_users.list_secrets(call.entity.id)),
    ),
    _SECRETS.delete_operation(
        "Ends a secret, and the tokens that it obtained, at once.",
        _SECRETS.child_handler("remove_secret"),
        verb="remove",
    ),
)
