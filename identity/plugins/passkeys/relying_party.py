"""PasskeyRelyingParty: the relying party of passkeys, and the options of ceremonies."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from identity.api.crypto import encode_base64url
from identity.api.entities import HumanUser, Subject
from identity.api.plugins import InvalidSetting
from identity.api.plugins import Settings as CoreSettings
from identity.api.services import RecordNamespace, Services
from identity.plugins.passkeys.passkey import Passkey

if TYPE_CHECKING:
    from identity.plugins.passkeys import PasskeysPluginSettings

#: How long browsers wait for the user, in milliseconds; as long as a challenge is valid.
_TIMEOUT = 300_000
#: Ed25519, ES256 and RS256 (COSE); some TPMs support only the last.
_ALGORITHMS = (-8, -7, -257)
_RECORD_KIND, _RECORD_KEY, _RP_ID_MEMBER = "relying_party", "rp_id", "rp_id"


@dataclass(frozen=True)
class PasskeyRelyingParty:
    """The service as browsers and authenticators see it (WebAuthn Level 3 §5.1.2). ``rp_id`` is the host name of the
    passkeys, ``origins`` are the accepted origins of responses, that of the service's own pages first; all are compared
    exactly. ``has_explicit_rp_id`` is True if the settings contain the name."""

    rp_id: str
    origins: tuple[str, ...]
    has_explicit_rp_id: bool
    authenticators: frozenset[str]
    attestation_roots: tuple[bytes, ...]
    record_namespace: RecordNamespace

    @classmethod
    def from_settings(
        cls, core: CoreSettings, passkeys_plugin_settings: "PasskeysPluginSettings", name_space: RecordNamespace
    ) -> "PasskeyRelyingParty":
        """Raises InvalidSetting for a name that browsers would refuse."""
        host = urlsplit(core.login_url).hostname or ""
        rp_id, origin = passkeys_plugin_settings.rp_id.lower() or host, core.login_origin
        related = passkeys_plugin_settings.related_origins
        if rp_id != host and not (host.endswith(f".{rp_id}") and "." in rp_id) and not (origin in related and rp_id):
            raise InvalidSetting(
                "identity.plugin.passkeys.rp_id",
                f"must be {host}, or a domain above it, unless related_origins contains {origin}",
            )
        return cls(
            rp_id,
            tuple(dict.fromkeys((origin, *related))),
            bool(passkeys_plugin_settings.rp_id),
            frozenset(passkeys_plugin_settings.authenticators),
            passkeys_plugin_settings.attestation_roots_pem(),
            name_space,
        )

    def find_rp_id_error(self, services: Services) -> str | None:
        """What the operator must fix if existing passkeys do not work with this host; None if they do."""
        record = services.record_service(self.record_namespace).find(_RECORD_KIND, _RECORD_KEY)
        stored_rp_id = None if record is None else str(record.value[_RP_ID_MEMBER])
        if self.has_explicit_rp_id or stored_rp_id in (None, self.rp_id):
            return None
        return (
            f"people have added passkeys for {stored_rp_id}, which work nowhere else, and identity.login_url says"
            f" {self.rp_id} now. Put it back, or, to give those passkeys up, set identity.plugin.passkeys.rp_id ="
            f" {self.rp_id}"
        )

    def store_rp_id(self, services: Services) -> None:
        """Store the host name of passkeys from now on. Raises Conflict."""
        value, records = {_RP_ID_MEMBER: self.rp_id}, services.record_service(self.record_namespace)
        record = records.find(_RECORD_KIND, _RECORD_KEY)
        if record is None:
            records.add(_RECORD_KIND, _RECORD_KEY, value)
        elif record.value != value:
            records.replace(record, value)

    def request_options(
        self, challenge: bytes, allow_credentials: Iterable[Passkey] = (), *, verification: str
    ) -> dict[str, object]:
        """Options of navigator.credentials.get; without ``allow_credentials`` the user chooses among all of their
        passkeys."""
        return {
            "challenge": encode_base64url(challenge),
            "rpId": self.rp_id,
            "timeout": _TIMEOUT,
            "userVerification": verification,
            "allowCredentials": [passkey.descriptor() for passkey in allow_credentials],
        }

    def creation_options(
        self,
        challenge: bytes,
        person: Subject,
        user_handle: bytes,
        exclude_credentials: Iterable[Passkey],
        *,
        name: str,
        is_automatic: bool = False,
    ) -> dict[str, object]:
        """Options of navigator.credentials.create, with the organization's name; authenticators with one of the
        ``exclude_credentials`` create no other. ``is_automatic``: useful only if it can replace the password later."""
        return {
            "challenge": encode_base64url(challenge),
            "rp": {"id": self.rp_id, "name": name},
            "user": {"id": encode_base64url(user_handle), **_user_names(person)},
            "pubKeyCredParams": [{"type": "public-key", "alg": algorithm} for algorithm in _ALGORITHMS],
            "timeout": _TIMEOUT,
            "excludeCredentials": [passkey.descriptor() for passkey in exclude_credentials],
            "authenticatorSelection": {
                "residentKey": "required" if is_automatic else "preferred",
                "requireResidentKey": is_automatic,
                "userVerification": "preferred",
            },
            "attestation": "direct" if self.authenticators else "none",
        }

    def signal_details(self, person: Subject, passkeys: Iterable[Passkey]) -> dict[str, object]:
        """All passkeys of the person, their user handles, and the person's current names."""
        passkeys = tuple(passkeys)
        return {
            "account": person.user.id,
            "rpId": self.rp_id,
            "userIds": sorted({encode_base64url(passkey.user_handle) for passkey in passkeys}),
            "credentialIds": [passkey.id_text for passkey in passkeys],
            **_user_names(person),
        }


def _user_names(person: Subject) -> dict[str, str]:
    user = person.user
    display_name = user.display_name if isinstance(user, HumanUser) else user.user_name
    return {"name": person.login_name, "displayName": display_name}
