"""Signing keys: what the service signs tokens with."""

from typing import Literal

from identity.domain.signing_keys import KeyState
from identity.http import targets
from identity.plugins.management.operation import Call, Operation
from identity.plugins.management.representation import Moment, Representation
from identity.services.commands import Command
from identity.services.signing_keys import SigningKeyState
from identity.storage.paging import Page


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


def _shown(one: SigningKeyState) -> SigningKey:
    return SigningKey.of(one.key, state=one.state, retires_at=one.retires_at, published_until=one.published_until)


def _list(call: Call) -> Page[SigningKey]:
    return Page(tuple(map(_shown, call.services.signing_keys.states())))


def _rotate(call: Call) -> SigningKey:
    made = call.services.signing_keys.rotate(emergency=call.command.mode == "emergency")
    return next(_shown(one) for one in call.services.signing_keys.states() if one.key.id == made.id)


OPERATIONS = (
    Operation(
        name="list_signing_keys",
        method="GET",
        path="/instance/signing-keys",
        summary="Lists the signing keys, newest first.",
        permission="signing_key.read",
        target=targets.instance,
        handle=_list,
        answers=SigningKey,
        many=True,
    ),
    Operation(
        name="rotate_signing_key",
        method="POST",
        path="/instance/signing-keys/rotate",
        summary="Makes the next signing key. Where one waits already, that one is the answer.",
        description="A normal one is announced before it signs, so that no client meets a key that it does not know."
        " In an emergency it signs after 30 seconds.",
        permission="signing_key.write",
        target=targets.instance,
        handle=_rotate,
        command=RotateSigningKey,
        answers=SigningKey,
    ),
)
