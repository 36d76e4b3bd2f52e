"""Signing keys in a hardware security module, by PKCS #11 (also named Cryptoki)."""

import stat
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path

from identity.api.crypto import ExternalSigner, SignerUnavailable
from identity.api.plugins import InvalidSetting, duration, hookimpl, setting


@dataclass(frozen=True, kw_only=True)
class Pkcs11Settings:
    """The module of the manufacturer, and the token in it."""

    module: Path | None = setting(
        "The PKCS #11 module of the manufacturer, such as /usr/lib/softhsm/libsofthsm2.so. Without it, the plugin"
        " offers no signer.",
        default=None,
    )
    token: str = setting("The label of the token.", default="")
    pin_file: Path | None = setting("A file with the PIN of the token's user, with mode 0600.", default=None)
    spare_label: str = setting(
        "Takes keys that were created in the token beforehand and have this label, instead of creating them there.",
        default="",
    )
    timeout: timedelta = duration("How long a request waits for a signature.", "5s", at_least="1s", at_most="1m")

    def __post_init__(self) -> None:
        if self.module is None:
            return
        if find_spec("pkcs11") is None:
            raise InvalidSetting("module", "needs python-pkcs11, which the extra pkcs11 of this package brings")
        if not self.token:
            raise InvalidSetting("token", "is missing")
        if self.pin_file is None:
            raise InvalidSetting("pin_file", "is missing")

    def pin(self) -> str:
        """The PIN, read whenever the service logs in to the token. Raises SignerUnavailable."""
        if self.pin_file is None:
            raise SignerUnavailable("identity.plugin.pkcs11.pin_file is missing.")
        try:
            if stat.S_IMODE(self.pin_file.stat().st_mode) & 0o077:
                raise SignerUnavailable(f"{self.pin_file} is open to others: run chmod 600 {self.pin_file}")
            return self.pin_file.read_text("utf-8").strip()
        except (OSError, ValueError) as problem:
            reason = problem.strerror if isinstance(problem, OSError) else "it is no text"
            raise SignerUnavailable(f"identity.plugin.pkcs11.pin_file: {self.pin_file}: {reason}") from None


class Pkcs11Plugin:
    """Signing keys in a hardware security module."""

    hookspecs = 1
    Settings = Pkcs11Settings

    def __init__(self, settings: Pkcs11Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_signers(self) -> Iterable[ExternalSigner]:
        """The token, if a module is configured."""
        if self.settings.module is None:
            return ()
        from identity.plugins.pkcs11.signer import Pkcs11Signer

        return [Pkcs11Signer(self.settings)]
