"""The factor passkeys."""

from typing import ClassVar

from identity.api.pages import gettext_lazy
from identity.api.sign_in import Factor


class PasskeyFactor(Factor):
    """A key on a device or in a password manager, for this service only."""

    name: ClassVar[str] = "passkeys"
    label: ClassVar[str] = gettext_lazy("Passkey")
    hint: ClassVar[str] = gettext_lazy("Your fingerprint, face or PIN on this device, or a security key.")
    #: Without what user verification adds.
    methods: ClassVar[tuple[str, ...]] = ("swk", "user")
    icon: ClassVar[str] = "key"
    is_passwordless: ClassVar[bool] = True
