"""The account page that shows users their badge."""

from collections.abc import Mapping

from pyramid.config import Configurator

from badges.records import Badges
from identity.api.pages import SignedInPage


class BadgePage(SignedInPage):
    """A page without a form."""

    template = "badges/badge.html"

    def template_variables(self) -> Mapping[str, object]:
        """The user's badge; None without one."""
        badges: Badges = self.request.registry.badges
        return {"badge": badges.find(self.request.services, self.subject.user.id)}


def add_badge_page(config: Configurator, badges: Badges) -> None:
    """Register the page and its template."""
    config.include("identity.pages")
    config.registry.badges = badges
    config.add_page_templates("badges:templates")
    config.add_page(
        "badges", "/account/badge", BadgePage, permission=SignedInPage.SIGNED_IN_PERMISSION, authenticate="session"
    )
