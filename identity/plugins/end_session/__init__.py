"""Logout requested by applications (OpenID Connect RP-Initiated Logout): the endpoint and its two pages."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from identity.api.plugins import hookimpl

if TYPE_CHECKING:
    from pyramid.config import Configurator

    from identity.api.endpoints import Endpoint


class EndSessionPlugin:
    """Sign-out by applications (RP-initiated logout). Without it, users sign out only at the service's own pages."""

    hookspecs = 1

    @hookimpl
    def identity_endpoints(self) -> "Iterable[Endpoint]":
        """The end-session endpoint, and the path at which its pending requests continue."""
        from identity.plugins.end_session import endpoint

        return [endpoint.ENDPOINT, endpoint.RESUME]

    @hookimpl
    def identity_configure(self, config: "Configurator") -> None:
        """Add the confirmation page, and the page that leads back to the application."""
        from identity.plugins.end_session import pages
        from identity.plugins.end_session.endpoint import PENDING_REQUEST_PARAMETER

        config.include("identity.pages")
        config.add_page_templates("identity.plugins.end_session:templates")
        config.add_logout_pages(
            PENDING_REQUEST_PARAMETER, pages.ConfirmLogoutPage, pages.LogoutDonePage, pages.find_logout_return
        )
