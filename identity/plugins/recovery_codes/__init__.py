"""Recovery codes: ten codes on paper, each of which replaces a lost factor once."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from identity.api.plugins import hookimpl

if TYPE_CHECKING:
    from pyramid.config import Configurator

    from identity.api.sign_in import Factor


class RecoveryCodesPlugin:
    """A second factor: recovery codes for users who have lost their other factors."""

    hookspecs = 1

    @hookimpl
    def identity_factors(self) -> "Iterable[Factor]":
        """Offer the factor recovery_codes."""
        from identity.plugins.recovery_codes.factor import RecoveryCodesFactor

        return [RecoveryCodesFactor()]

    @hookimpl
    def identity_configure(self, config: "Configurator") -> None:
        """Add the pages for entering a code and for enrolment."""
        from identity.plugins.recovery_codes.pages import EnrolRecoveryCodesPage, ProveRecoveryCodePage

        config.include("identity.pages")
        config.add_page_templates("identity.plugins.recovery_codes:templates")
        config.add_factor_pages(ProveRecoveryCodePage, EnrolRecoveryCodesPage)
