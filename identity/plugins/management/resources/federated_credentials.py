"""Federated credentials of service users: which tokens of outside issuers stand for them."""

from identity.domain.federated_credentials import FederatedCredential
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import SERVICE_USER
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands.service_users import AddFederatedCredential


@representation_fields(FederatedCredential, without={"user_id"})
class FederatedCredentialRepresentation(Representation):
    """A federated credential; it never changes."""


_CREDENTIALS = ApiResource[FederatedCredential](
    "federated_credential", FederatedCredentialRepresentation, permission_subject="service_user"
)

OPERATIONS = (
    _CREDENTIALS.list(
        SERVICE_USER / "federated-credentials",
        "Lists the federated credentials of a service user, newest first.",
        lambda call: call.services.service_users.page_federated_credentials(call.entity.id, call.page),
        has_states=False,
    ),
    _CREDENTIALS.create(
        "add_federated_credential",
        SERVICE_USER / "federated-credentials",
        "Lets a service user get tokens for tokens of an outside issuer.",
        AddFederatedCredential,
        lambda call, command: call.services.service_users.add_federated_credential(
            call.entity.id, command, principal=call.principal
        ),
        description="`instance_managed` takes instance.write: only such credentials serve service users with a role at "
        "the instance.",
    ),
    _CREDENTIALS.get(
        SERVICE_USER / "federated-credentials/{credential}",
        "Shows issuer and conditions of a federated credential, and when it was last used.",
        lambda call: call.services.service_users.get_federated_credential(call.entity.id, call.child_id),
    ),
    _CREDENTIALS.delete(
        "remove_federated_credential",
        SERVICE_USER / "federated-credentials/{credential}",
        "Removes a federated credential: tokens obtained with it end at once.",
        lambda call: call.services.service_users.remove_federated_credential(
            call.entity.id, call.child_id, principal=call.principal
        ),
        permission="service_user.write",
    ),
)
