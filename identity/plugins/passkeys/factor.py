"""The factor passkeys."""

from typing import ClassVar

from identity.api.pages import gettext_lazy
from identity.api.sign_in import Enrolment, Factor
from identity.plugins.passkeys.passkey import Passkey

_AUTOMATIC = gettext_lazy("Saved by your browser. You can still sign in with your password alone.")


class PasskeyFactor(Factor):
    """A key on a device or in a password manager, for this service only."""

    name: ClassVar[str] = "passkeys"
    label: ClassVar[str] = gettext_lazy("Passkey")
    hint: ClassVar[str] = gettext_lazy("Your fingerprint, face or PIN on this device, or a security key.")
    #: Without what user verification adds.
    methods: ClassVar[tuple[str, ...]] = ("swk", "user")
    icon: ClassVar[str] = "key"
    is_passwordless: ClassVar[bool] = True

    def is_optional(self, enrolment: Enrolment) -> bool:
        """True for a passkey that the browser saved after a sign-in with a password."""
        return bool(enrolment.value.get(Passkey.AUTOMATIC_MEMBER))

    def status_text(self, enrolment: Enrolment) -> str:
        return _AUTOMATIC if self.is_optional(enrolment) else ""
