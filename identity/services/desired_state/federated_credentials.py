"""Federated credentials of service users and applications in the desired state."""

from identity.domain.deletion_impact import DeletionTarget
from identity.domain.federated_credentials import FederatedCredential
from identity.services.commands.desired_state import FederatedCredentialSpec
from identity.services.commands.service_users import AddFederatedCredential
from identity.services.desired_state.reconciler import ChangeAction, Reconciler, command_from_spec

_LABEL = "federated credential"


def ensure_federated_credentials(
    build: Reconciler, path: str, name: str, owner_id: str, described: tuple[FederatedCredentialSpec, ...] | None
) -> None:
    """They never change: one with other content is another one."""
    if described is None:
        return
    credentials, stored = build.services.federated_credentials, build.storage.credentials
    present = [] if build.create_all else list(stored.list_federated_credentials(owner_id))
    for number, spec in enumerate(described):
        credential_path = f"{path}.federated_credentials[{number}]"
        with build.collect_problems(credential_path):
            command = command_from_spec(spec, AddFederatedCredential)
            credential = next((item for item in present if _is_described(item, spec.id, command)), None)
            if credential is None:
                credential = credentials.add(owner_id, command, principal=build.principal, id=build.new_entity_id(spec))
                build.record_change(ChangeAction.ADD, _LABEL, f"{credential.name} of {name}")
            if build.mark_seen(credential_path, _LABEL, credential.id):
                build.register_id(credential_path, spec, credential.id)
    build.prune_rows(
        f"{path}.federated_credentials",
        _LABEL,
        lambda: list(stored.list_federated_credentials(owner_id)),
        key=lambda credential: (credential.id,),
        name=lambda credential: f"{credential.name} of {name}",
        remove=lambda credential: credentials.remove(owner_id, credential.id, principal=build.principal),
        effects=lambda credential: build.services.deletion_impact(DeletionTarget.FEDERATED_CREDENTIAL, credential.id),
    )


def _is_described(credential: FederatedCredential, id: str | None, command: AddFederatedCredential) -> bool:
    is_same = all(getattr(credential, name) == value for name, value in command)
    return is_same and id in (None, credential.id)
