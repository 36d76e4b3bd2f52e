"""Passkeys: the factor."""

from typing import ClassVar

from identity.domain.words import say
from identity.provider.factor import Factor


class Passkeys(Factor):
    """A key that a device or a password manager keeps, for our pages alone."""

    name: ClassVar[str] = "passkeys"
    label: ClassVar[str] = say("Passkey")
    hint: ClassVar[str] = say("Your fingerprint, face or PIN on this device, or a security key.")
    #: Without what more a passkey proves that has verified its user.
    methods: ClassVar[tuple[str, ...]] = ("swk", "user")
    icon: ClassVar[str] = "key"
    alone: ClassVar[bool] = True
