"""Sign-in: the pages between an authorization request and its response, and the rules that choose them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from identity.api.plugins import hookimpl

if TYPE_CHECKING:
    from pyramid.config import Configurator

    from identity.api.sign_in import Interaction


class LoginPlugin:
    """The sign-in pages: login name and password, account chooser, registration, password reset, consent."""

    hookspecs = 1

    @hookimpl
    def identity_interactions(self) -> "Iterable[Interaction]":
        """Create, select_account, login, change_password, consent."""
        from identity.plugins.login.interactions import INTERACTIONS

        return INTERACTIONS

    @hookimpl
    def identity_configure(self, config: "Configurator") -> None:
        """Every page of a sign-in."""
        from identity.plugins.login import pages, sign_in_errors

        config.include("identity.pages")
        config.add_page_templates("identity.plugins.login:templates")
        pages.add_login_pages(config)
        sign_in_errors.add_exception_views(config)
