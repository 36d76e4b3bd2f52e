"""The user's own pages below /account, and the pages behind links in mails."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from identity.api.plugins import hookimpl

if TYPE_CHECKING:
    from pyramid.config import Configurator

    from identity.api.sign_in import Interaction


class AccountPlugin:
    """Account pages: users see and change their profile, password, sessions and connected applications."""

    hookspecs = 1

    @hookimpl
    def identity_interactions(self) -> "Iterable[Interaction]":
        """The question whether an account that is to be deleted stays."""
        from identity.plugins.account.interactions import CancelAccountDeletion

        return [CancelAccountDeletion()]

    @hookimpl
    def identity_configure(self, config: "Configurator") -> None:
        """Every page of the account, and every page behind a link."""
        from identity.api.pages import Page, gettext_lazy
        from identity.plugins.account import one_time_links, pages

        config.include("identity.pages")
        config.add_page_templates("identity.plugins.account:templates")
        config.add_account_menu_entry(gettext_lazy("Your account"), Page.ACCOUNT_PATH)
        pages.add_account_pages(config)
        one_time_links.add_one_time_link_pages(config)
