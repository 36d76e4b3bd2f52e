"""Passkeys: the factor."""

from typing import ClassVar

from identity.domain.messages import gettext_lazy
from identity.provider.factor import Factor


class PasskeyFactor(Factor):
    """A key that a device or a password manager keeps, for our pages alone."""

    name: ClassVar[str] = "passkeys"
    label: ClassVar[str] = gettext_lazy("Passkey")
    hint: ClassVar[str] = gettext_lazy("Your fingerprint, face or PIN on this device, or a security key.")
    #: Without what more a passkey proves that has verified its user.
    methods: ClassVar[tuple[str, ...]] = ("swk", "user")
    icon: ClassVar[str] = "key"
    is_passwordless: ClassVar[bool] = True
