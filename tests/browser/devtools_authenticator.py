"""A virtual authenticator of a tab (DevTools protocol, domain WebAuthn)."""

from typing import Any

from tests.browser.tab import Tab


class DevToolsAuthenticator:
    """A platform authenticator with user verification by default; options override it."""

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
        """The stored credentials."""
        found: list[dict[str, Any]] = self._command("getCredentials")["credentials"]
        return found

    def add(self, credential: dict[str, Any]) -> None:
        """Store a credential, possibly from another authenticator."""
        self._command("addCredential", credential=credential)

    def recognise(self, whether: bool) -> None:
        """Set whether user verification succeeds."""
        self._command("setUserVerified", isUserVerified=whether)

    def present(self, whether: bool) -> None:
        """Set whether the user confirms presence."""
        self._command("setAutomaticPresenceSimulation", enabled=whether)

    def clear(self) -> None:
        """Delete all credentials."""
        self._command("clearCredentials")

    def remove(self) -> None:
        """Remove the authenticator from the tab."""
        self._command("removeVirtualAuthenticator")

    def _command(self, name: str, **parameters: Any) -> Any:
        return self._tab.command(f"WebAuthn.{name}", authenticatorId=self.id, **parameters)
