"""Signing keys: what the service signs tokens with."""

from typing import Literal

from identity.domain.signing_keys import KeyState
from identity.http import targets
from identity.plugins.management.operation import Call
from identity.plugins.management.representation import Moment, Representation
from identity.plugins.management.resource import Resource
from identity.services.commands import Command
from identity.services.signing_keys import SigningKeyState


class SigningKey(Representation):
    """A signing key, public facts alone. `retires_at` and `published_until` are null until it has a successor."""

    id: str
    generation: int
    algorithm: str
    state: KeyState
    created_at: Moment
    active_at: Moment
    retires_at: Moment | None
    published_until: Moment | None


class RotateSigningKey(Command):
    """Make the next signing key: announced first or, in an emergency, signing after 30 seconds."""

    mode: Literal["normal", "emergency"] = "normal"


def _shown(_call: Call, one: SigningKeyState) -> SigningKey:
    return SigningKey.of(one.key, state=one.state, retires_at=one.retires_at, published_until=one.published_until)


def _rotate(call: Call) -> SigningKeyState:
    made = call.services.signing_keys.rotate(emergency=call.command.mode == "emergency")
    return next(one for one in call.services.signing_keys.states() if one.key.id == made.id)


_KEYS = Resource(
    kind="signing_key",
    answers=SigningKey,
    path="/instance/signing-keys",
    list_path="/instance/signing-keys",
    target=targets.instance,
    show=_shown,
)

_ONE = "/instance/signing-keys/{signing_key}"

OPERATIONS = (
    _KEYS.lists("Lists the signing keys, newest first.", lambda call: call.services.signing_keys.states(), paged=False),
    _KEYS.does(
        "rotate",
        "POST",
        "Makes the next signing key. Where one waits already, that one is the answer.",
        _rotate,
        description="A normal one is announced before it signs, so that no client meets a key that it does not know."
        " In an emergency it signs after 30 seconds.",
        command=RotateSigningKey,
    ),
    _KEYS.removes(
        "Withdraws a signing key that others may know, at once.",
        lambda call: call.services.signing_keys.withdraw([call.names["signing_key"]]),
        description="The key list shows it no more, and tokens that it signed do not count here any more. If it was"
        " the active one, a new key signs from now on.",
        verb="withdraw",
        path=_ONE,
        permission="signing_key.write",
    ),
)
