"""Authenticator apps: codes of six digits that change every half minute (RFC 6238)."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from identity.api.plugins import hookimpl

if TYPE_CHECKING:
    from pyramid.config import Configurator

    from identity.api.services import RecordNamespace
    from identity.api.sign_in import Factor


class TotpPlugin:
    """A second factor: codes of an authenticator app (TOTP, RFC 6238)."""

    hookspecs = 1

    @hookimpl
    def identity_record_namespace(self, namespace: "RecordNamespace") -> None:
        """Secrets are stored here until they are confirmed."""
        self._name_space = namespace

    @hookimpl
    def identity_factors(self) -> "Iterable[Factor]":
        """Offer the factor totp."""
        from identity.plugins.totp.factor import TotpFactor

        return [TotpFactor()]

    @hookimpl
    def identity_configure(self, config: "Configurator") -> None:
        """Add the pages for entering a code and for enrolling an app."""
        from identity.plugins.totp.pages import EnrolTotpPage, ProveTotpPage

        config.include("identity.pages")
        config.add_page_templates("identity.plugins.totp:templates")
        EnrolTotpPage.record_namespace = self._name_space
        config.add_factor_pages(ProveTotpPage, EnrolTotpPage)
