"""Secrets of service users: for programs that cannot sign."""

from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.users import ServiceUser
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import SERVICE_USER
from identity.plugins.management.operation import EmptyCommand, OperationCall
from identity.plugins.management.representation import Representation, representation_fields


@representation_fields(ServiceUserSecret, without={"user_id"})
class ServiceUserSecretRepresentation(Representation):
    """A live secret, without the secret itself."""


class NewServiceUserSecretRepresentation(ServiceUserSecretRepresentation):
    """A new secret, which is shown only once; the client id is the service user's id."""

    client_secret: str


def _add_secret(call: OperationCall[ServiceUser], _: EmptyCommand) -> NewServiceUserSecretRepresentation:
    added, text = call.services.service_users.add_secret(call.entity.id, principal=call.principal)
    return NewServiceUserSecretRepresentation.from_value(added, client_secret=text)


def _find_secret(call: OperationCall[ServiceUser]) -> ServiceUserSecret:
    secrets = call.services.service_users.list_secrets(call.entity.id)
    return call.find_child("secret", secrets, lambda secret: secret.id)


_SECRETS = ApiResource[ServiceUserSecret](
    "service_user_secret", ServiceUserSecretRepresentation, permission_subject="service_user"
)

OPERATIONS = (
    _SECRETS.list(
        SERVICE_USER / "secrets",
        "Lists the live secrets of a service user, oldest first, without the secrets themselves.",
        lambda call: call.services.service_users.list_secrets(call.entity.id),
        is_paged=False,
    ),
    _SECRETS.create(
        "add_service_user_secret",
        SERVICE_USER / "secrets",
        "Adds a secret to a service user; the response contains it, once.",
        EmptyCommand,
        _add_secret,
        description="Two may be active, so that one can be replaced without a gap.",
        representation=NewServiceUserSecretRepresentation,
    ),
    _SECRETS.get(SERVICE_USER / "secrets/{secret}", "Shows when a secret was created and last used.", _find_secret),
    _SECRETS.delete(
        "remove_service_user_secret",
        SERVICE_USER / "secrets/{secret}",
        "Revokes a secret, and the tokens obtained with it.",
        lambda call: call.services.service_users.remove_secret(call.entity.id, call.child_id, principal=call.principal),
        permission="service_user.write",
    ),
)
