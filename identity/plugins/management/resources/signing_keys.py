"""Signing keys: what the service signs tokens with."""

from typing import Any, Literal

from identity.domain.instance import Instance
from identity.domain.signing_keys import KeyState
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import INSTANCE
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import DateTime, Representation
from identity.services.commands import Command
from identity.services.signing_keys import SigningKeyState


class SigningKeyRepresentation(Representation):
    """A signing key, public facts alone. `retires_at` and `published_until` are null until it has a successor."""

    id: str
    generation: int
    algorithm: str
    state: KeyState
    created_at: DateTime
    active_at: DateTime
    retires_at: DateTime | None
    published_until: DateTime | None


class RotateSigningKeyRequest(Command):
    """Make the next signing key: announced first or, in an emergency, signing after 30 seconds."""

    mode: Literal["normal", "emergency"] = "normal"


def _represent(_call: OperationCall[Any], key_state: SigningKeyState) -> SigningKeyRepresentation:
    return SigningKeyRepresentation.from_value(
        key_state.key, state=key_state.state, retires_at=key_state.retires_at, published_until=key_state.published_until
    )


def _rotate_key(call: OperationCall[Instance], command: RotateSigningKeyRequest) -> SigningKeyState:
    signing_keys = call.services.signing_keys
    signing_key = signing_keys.rotate(emergency=command.mode == "emergency")
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
        "Makes the next signing key. Where one waits already, that one is the answer.",
        RotateSigningKeyRequest,
        _rotate_key,
        description="A normal one is announced before it signs, so that no client meets a key that it does not know."
        " In an emergency it signs after 30 seconds.",
    ),
    _KEYS.delete(
        "withdraw_signing_key",
        INSTANCE / "instance/signing-keys/{signing_key}",
        "Withdraws a signing key that others may know, at once.",
        lambda call: call.services.signing_keys.withdraw([call.child_id]),
        description="The key list shows it no more, and tokens that it signed do not count here any more. If it was"
        " the active one, a new key signs from now on.",
        permission="signing_key.write",
    ),
)
