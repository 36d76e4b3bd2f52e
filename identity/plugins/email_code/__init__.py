"""Codes by email: six digits, sent to the account's verified address."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from identity.api.plugins import hookimpl

if TYPE_CHECKING:
    from pyramid.config import Configurator

    from identity.api.services import RecordNamespace
    from identity.api.sign_in import Factor


class EmailCodePlugin:
    """A second factor: codes that are sent by email."""

    hookspecs = 1

    @hookimpl
    def identity_record_namespace(self, namespace: "RecordNamespace") -> None:
        """Sent codes are stored here."""
        self._name_space = namespace

    @hookimpl
    def identity_factors(self) -> "Iterable[Factor]":
        """Offer the factor email_code."""
        from identity.plugins.email_code.factor import EmailCodeFactor

        return [EmailCodeFactor()]

    @hookimpl
    def identity_configure(self, config: "Configurator") -> None:
        """Add the pages for entering a code and for enrolment."""
        from identity.plugins.email_code.pages import EnrolEmailCodePage, ProveEmailCodePage, _EmailCodePage

        config.include("identity.pages")
        config.add_page_templates("identity.plugins.email_code:templates")
        _EmailCodePage.record_namespace = self._name_space
        config.add_factor_pages(ProveEmailCodePage, EnrolEmailCodePage)
