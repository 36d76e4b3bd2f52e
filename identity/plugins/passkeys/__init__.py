"""Passkeys (WebAuthn Level 3): as a second factor, and instead of login name and password."""

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from identity.api.plugins import InvalidSetting, hookimpl, setting
from identity.api.storage import StorageUnavailable

if TYPE_CHECKING:
    from pyramid.config import Configurator

    from identity.api.plugins import ServicesFactory, SystemCheck
    from identity.api.plugins import Settings as CoreSettings
    from identity.api.services import RecordNamespace
    from identity.api.sign_in import Factor, Interaction

_AAGUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def _check_aaguid(aaguid: str) -> None:
    if not _AAGUID.fullmatch(aaguid):
        raise ValueError(f"must be AAGUIDs such as cb69481e-8ff7-4039-93ec-0a2729a154a8; {aaguid} will not do")


#: Browsers accept five related sites, and ignore further ones.
_MAX_RELATED_ORIGINS = 5
#: An origin as browsers serialize it: a host name in lower case, in ASCII, without the standard port.
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_ORIGIN = re.compile(rf"https://(?=.{{1,253}}(?::|\Z))(?:{_LABEL}\.)+(?=[a-z]){_LABEL}(?::([1-9][0-9]{{0,4}}))?")


def _check_origin(origin: str) -> None:
    match = _ORIGIN.fullmatch(origin)
    if match is None or (match[1] is not None and (match[1] == "443" or int(match[1]) > 65535)):
        raise ValueError(f"must be origins such as https://login.example.com, without a path; {origin} will not do")


@dataclass(frozen=True, kw_only=True)
class PasskeysPluginSettings:
    """For which host passkeys are made, and on which authenticators."""

    rp_id: str = setting(
        "The host name for which passkeys are created (RP ID): the host of ``identity.login_url`` (the default), or a"
        " domain above it. Passkeys work for this name only, so a change makes all existing ones unusable. The service"
        " does not start with another name unless you set it here.",
        default="",
    )
    related_origins: tuple[str, ...] = setting(
        "Further origins whose pages may use passkeys of ``rp_id``, for example ``https://login.example.org``: at most"
        " five. The service lists them at ``/.well-known/webauthn``, which browsers request from the host ``rp_id``."
        " Such pages can sign in as your users, so list only your own.",
        default=(),
        validator=_check_origin,
    )
    authenticators: tuple[str, ...] = setting(
        "The models of authenticators that are allowed, by AAGUID. Empty allows all models. An authenticator must"
        " prove its model with a certificate of ``attestation_roots``.",
        default=(),
        validator=_check_aaguid,
    )
    attestation_roots: Path | None = setting(
        "A file with the root certificates (PEM) of the manufacturers of those authenticators.", default=None
    )

    def __post_init__(self) -> None:
        if len(self.related_origins) > _MAX_RELATED_ORIGINS:
            raise InvalidSetting("related_origins", f"must be at most {_MAX_RELATED_ORIGINS}: browsers ignore others")
        if self.authenticators and not self.attestation_roots_pem():
            raise InvalidSetting(
                "attestation_roots", "must be a file with certificates: an AAGUID by itself proves nothing"
            )

    def attestation_roots_pem(self) -> tuple[bytes, ...]:
        """The certificates, each in PEM. Raises InvalidSetting."""
        if self.attestation_roots is None:
            return ()
        try:
            text = self.attestation_roots.read_bytes()
        except OSError as problem:
            raise InvalidSetting(
                "attestation_roots", f"{self.attestation_roots} cannot be read: {problem.strerror}"
            ) from None
        return tuple(re.findall(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", text, re.DOTALL))


# Inside the plugin class ``Settings`` is the plugin's attribute.
_Settings = PasskeysPluginSettings


class PasskeysPlugin:
    """Passkeys, as a second factor or alone."""

    hookspecs = 1
    Settings = _Settings

    def __init__(self, settings: _Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_record_namespace(self, namespace: "RecordNamespace") -> None:
        """Where is kept for which host passkeys were made."""
        self.name_space = namespace

    @hookimpl
    def identity_factors(self) -> "Iterable[Factor]":
        """passkeys."""
        from identity.plugins.passkeys.factor import PasskeyFactor

        return [PasskeyFactor()]

    @hookimpl
    def identity_interactions(self) -> "Iterable[Interaction]":
        """The page on which a browser may save a passkey after a sign-in with a password."""
        from identity.plugins.passkeys.interactions import PasskeyUpgrade

        return [PasskeyUpgrade(requires_attestation=bool(self.settings.authenticators))]

    @hookimpl
    def identity_system_checks(
        self, settings: "CoreSettings", open_services: "ServicesFactory"
    ) -> "Iterable[SystemCheck]":
        """Checks that existing passkeys still work."""
        from identity.api.plugins import SystemCheck
        from identity.plugins.passkeys.relying_party import PasskeyRelyingParty

        party = PasskeyRelyingParty.from_settings(settings, self.settings, self.name_space)

        def run() -> str | None:
            with open_services() as services:
                return party.find_rp_id_error(services)

        return [SystemCheck("passkeys", run, affects_readiness=False)]

    @hookimpl
    def identity_configure(self, config: "Configurator") -> None:
        """Raises InvalidSetting if passkeys exist for another host."""
        from identity.plugins.passkeys import pages
        from identity.plugins.passkeys.related_origins import add_related_origins_route
        from identity.plugins.passkeys.relying_party import PasskeyRelyingParty

        identity = config.registry.application
        party = PasskeyRelyingParty.from_settings(identity.settings, self.settings, self.name_space)
        problem = None
        # The service starts even if the database is unavailable; the system check runs the check again.
        with suppress(StorageUnavailable), identity.read_session() as services:
            problem = party.find_rp_id_error(services)
        if problem is not None:
            raise InvalidSetting("identity.plugin.passkeys.rp_id", problem)
        config.registry.passkeys = party
        pages.add_passkey_pages(config)
        add_related_origins_route(config, self.settings.related_origins)
