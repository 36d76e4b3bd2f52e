"""Federated credentials: which tokens of outside issuers stand for service users and applications."""

from typing import Any

from identity.domain.federated_credentials import FederatedCredential
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import APPLICATION, SERVICE_USER
from identity.plugins.management.operation import EntityPath, Operation
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands.service_users import AddFederatedCredential


@representation_fields(FederatedCredential, without={"user_id", "application_id"})
class FederatedCredentialRepresentation(Representation):
    """A federated credential; it never changes."""


def _operations(kind: str, subject: str, owner: EntityPath[Any], text: str, purpose: str) -> tuple[Operation, ...]:
    """Those of one kind of owner; ``text`` is its name in sentences."""
    child = f"federated-credentials/{{{kind.replace('federated_', '')}}}"
    credentials = ApiResource[FederatedCredential](kind, FederatedCredentialRepresentation, permission_subject=subject)
    return (
        credentials.list(
            owner / "federated-credentials",
            f"Lists the federated credentials of {text}, newest first.",
            lambda call: call.services.federated_credentials.page(call.entity.id, call.page),
            has_states=False,
        ),
        credentials.create(
            f"add_{kind}",
            owner / "federated-credentials",
            purpose,
            AddFederatedCredential,
            lambda call, command: call.services.federated_credentials.add(
                call.entity.id, command, principal=call.principal
            ),
            description="`instance_managed` takes instance.write: only such credentials serve service users with a "
            "role at the instance, and applications of the instance.",
        ),
        credentials.get(
            owner / child,
            f"Shows issuer and conditions of a federated credential of {text}, and when it was last used.",
            lambda call: call.services.federated_credentials.get(call.entity.id, call.child_id),
        ),
        credentials.delete(
            f"remove_{kind}",
            owner / child,
            f"Removes a federated credential: tokens that {text} obtained for itself with it end at once.",
            lambda call: call.services.federated_credentials.remove(
                call.entity.id, call.child_id, principal=call.principal
            ),
            permission=f"{subject}.write",
        ),
    )


OPERATIONS = (
    *_operations(
        "federated_credential",
        "service_user",
        SERVICE_USER,
        "a service user",
        "Lets a service user get tokens for tokens of an outside issuer.",
    ),
    *_operations(
        "application_federated_credential",
        "application",
        APPLICATION,
        "an application",
        "Lets an application authenticate with tokens of an outside issuer.",
    ),
)
