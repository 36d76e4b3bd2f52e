"""Authenticator: what lies in a tab's device, as the DevTools protocol pretends it (domain WebAuthn)."""

from typing import Any

from tests.browser.tab import Tab


class DevToolsAuthenticator:
    """A platform authenticator with a fingerprint reader, or whatever else the options say."""

    def __init__(self, tab: Tab, **options: Any) -> None:
        self._tab = tab
        tab.command("WebAuthn.enable", enableUI=False)
        described = {
            "protocol": "ctap2",
            "ctap2Version": "ctap2_1",
            "transport": "internal",
            "hasResidentKey": True,
            "hasUserVerification": True,
            "isUserVerified": True,
            "automaticPresenceSimulation": True,
            "defaultBackupEligibility": True,
            "defaultBackupState": True,
        }
        self.id: str = tab.command("WebAuthn.addVirtualAuthenticator", options=described | options)["authenticatorId"]

    @property
    def credentials(self) -> list[dict[str, Any]]:
        """What it keeps."""
        found: list[dict[str, Any]] = self._command("getCredentials")["credentials"]
        return found

    def add(self, credential: dict[str, Any]) -> None:
        """Keep a credential, of another authenticator perhaps."""
        self._command("addCredential", credential=credential)

    def recognise(self, whether: bool) -> None:
        """Whether the person is recognised by fingerprint from now on."""
        self._command("setUserVerified", isUserVerified=whether)

    def present(self, whether: bool) -> None:
        """Whether somebody touches it when they are asked to."""
        self._command("setAutomaticPresenceSimulation", enabled=whether)

    def clear(self) -> None:
        """Lose all it keeps."""
        self._command("clearCredentials")

    def remove(self) -> None:
        """Take it out of the device."""
        self._command("removeVirtualAuthenticator")

    def _command(self, name: str, **parameters: Any) -> Any:
        return self._tab.command(f"WebAuthn.{name}", authenticatorId=self.id, **parameters)
