"""SoftHSM: a PKCS #11 module whose tokens are files."""

import subprocess
from pathlib import Path

import pytest

MODULE = next(
    (
        path
        for folder in ("softhsm", "x86_64-linux-gnu/softhsm", "aarch64-linux-gnu/softhsm", "../lib64/softhsm")
        if (path := Path("/usr/lib") / folder / "libsofthsm2.so").exists()
    ),
    None,
)
LABEL, PIN = "identity", "4711"


class SoftHsm:
    """A token in a folder, for the module in this process and its children."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tokens = folder / "tokens"
        self.tokens.mkdir()
        file = folder / "softhsm2.conf"
        file.write_text(f"directories.tokendir = {self.tokens}\nobjectstore.backend = file\nlog.level = ERROR\n")
        monkeypatch.setenv("SOFTHSM2_CONF", str(file))
        self.pin_file = folder / "pin"
        self.pin_file.touch(0o600)
        self.pin_file.write_text(f"{PIN}\n")
        create = ["--init-token", "--free", "--label", LABEL, "--so-pin", "0815", "--pin", PIN]
        subprocess.run(["softhsm2-util", *create], check=True, capture_output=True)

    @property
    def settings(self) -> dict[str, str]:
        """Of the plugin, as in an ini file."""
        values = {"module": str(MODULE), "token": LABEL, "pin_file": str(self.pin_file)}
        return {f"identity.plugin.pkcs11.{name}": value for name, value in values.items()}

    def remove(self) -> None:
        self.tokens.rename(self.tokens.with_name("removed"))
        self.tokens.mkdir()

    def insert(self) -> None:
        self.tokens.rmdir()
        self.tokens.with_name("removed").rename(self.tokens)
