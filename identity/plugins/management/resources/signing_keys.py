"""Signing keys: what the service signs tokens with."""

from typing import Literal

from identity.domain.signing_keys import KeyState
from identity.http import route_contexts
from identity.plugins.management.api_resource import ApiResource
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


def _represent(_call: OperationCall, key_state: SigningKeyState) -> SigningKeyRepresentation:
    return SigningKeyRepresentation.from_value(
        key_state.key, state=key_state.state, retires_at=key_state.retires_at, published_until=key_state.published_until
    )


def _rotate_key(call: OperationCall) -> SigningKeyState:
    signing_key = call.services.signing_keys.rotate(emergency=call.command.mode == "emergency")
    return next(
        key_state for key_state in call.services.signing_keys.list_key_states() if key_state.key.id == signing_key.id
    )


_KEYS = ApiResource(
    kind="signing_key",
    representation=SigningKeyRepresentation,
    path="/instance/signing-keys",
    list_path="/instance/signing-keys",
    context_factory=route_contexts.instance_context,
    represent=_represent,
)

_KEY_PATH = "/instance/signing-keys/{signing_key}"

OPERATIONS = (
    _KEYS.list_operation(
        "Lists the signing keys, newest first.", lambda call: call.services.signing_keys.list_key_states(), paged=False
    ),
    _KEYS.action_operation(
        "rotate",
        "POST",
        "Makes the next signing key. Where one waits already, that one is the answer.",
        _rotate_key,
        description="A normal one is announced before it signs, so that no client meets a key that it does not know."
        " In an emergency it signs after 30 seconds.",
        command=RotateSigningKeyRequest,
    ),
    _KEYS.delete_operation(
        "Withdraws a signing key that others may know, at once.",
        lambda call: call.services.signing_keys.withdraw([call.path_values["signing_key"]]),
        description="The key list shows it no more, and tokens that it signed do not count here any more. If it was"
        " the active one, a new key signs from now on.",
        verb="withdraw",
        path=_KEY_PATH,
        permission="signing_key.write",
    ),
)
