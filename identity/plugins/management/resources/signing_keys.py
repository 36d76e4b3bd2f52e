"""Signing keys: the keys that the service signs tokens with."""

from typing import Any, Literal

from identity.domain.instance import Instance
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.domain.signing_keys import KeyState
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import INSTANCE
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import DateTime, Representation
from identity.services.commands import Command
from identity.services.signing_keys import SigningKeyState


class SigningKeyRepresentation(Representation):
    """The public data of a signing key. `retires_at` and `published_until` are null until it has a successor. `signer`
    is "software" or the name of the plugin's signer that has the private key, and null if it cannot be used."""

    id: str
    generation: int
    algorithm: str
    state: KeyState
    created_at: DateTime
    active_at: DateTime
    retires_at: DateTime | None
    published_until: DateTime | None
    signer: str | None


class RotateSigningKeyRequest(Command):
    """Create the next signing key: announced first or, in an emergency, signing after 30 seconds. `algorithm` is by
    default the service's first."""

    mode: Literal["normal", "emergency"] = "normal"
    algorithm: SignatureAlgorithm | None = None


def _represent(_call: OperationCall[Any], key_state: SigningKeyState) -> SigningKeyRepresentation:
    return SigningKeyRepresentation.from_value(
        key_state.key,
        state=key_state.state,
        retires_at=key_state.retires_at,
        published_until=key_state.published_until,
        signer=key_state.signer,
    )


def _rotate_key(call: OperationCall[Instance], command: RotateSigningKeyRequest) -> SigningKeyState:
    signing_keys = call.services.signing_keys
    signing_key = signing_keys.rotate(command.algorithm, emergency=command.mode == "emergency")
    return next(key_state for key_state in signing_keys.list_key_states() if key_state.key.id == signing_key.id)


_KEYS = ApiResource("signing_key", SigningKeyRepresentation, _represent)

OPERATIONS = (
    _KEYS.list(
        INSTANCE / "instance/signing-keys",
        "Lists the signing keys, newest first.",
        lambda call: call.services.signing_keys.list_key_states(),
        is_paged=False,
    ),
    _KEYS.action(
        "rotate_signing_key",
        INSTANCE / "instance/signing-keys/rotate",
        "Creates the next signing key. If one is already announced, returns that one.",
        RotateSigningKeyRequest,
        _rotate_key,
        description="A normal key is announced before it signs, so that clients know it in time. In an "
        "emergency it signs after 30 seconds.",
    ),
    _KEYS.delete(
        "withdraw_signing_key",
        INSTANCE / "instance/signing-keys/{signing_key}",
        "Withdraws a compromised signing key at once.",
        lambda call: call.services.signing_keys.withdraw([call.child_id]),
        description="The key list no longer contains it, and tokens that it signed are no longer valid. "
        "If it was the active key, a new key signs from now on.",
        permission="signing_key.write",
    ),
)
