"""LinkPage: what the pages behind links have in common; they stand in the frame of the sign-in pages."""

from urllib.parse import urlencode

from pyramid.response import Response

from identity.domain.applications import Application
from identity.domain.organizations import Organization
from identity.http.language_negotiation import UI_LOCALES_PARAM
from identity.pages.page import Page


class OneTimeLinkPage(Page):
    """A page for whoever opens it, signed in or not."""

    @property
    def link_secret(self) -> str:
        """The secret in the address."""
        code: str = self.request.matchdict["code"]
        return code

    def branding_organization(self) -> Organization | None:
        """The organization that the link has to do with, where that is known; the page looks like its own."""
        return None

    def branding_owner(self) -> tuple[Organization | None, Application | None]:
        return self.branding_organization(), None

    def redirect_in_language(self, path: str) -> Response:
        """303 to a page of ours, in the language that was chosen on this one."""
        language = self.request.GET.get(UI_LOCALES_PARAM)
        return self.redirect(f"{path}?{urlencode({UI_LOCALES_PARAM: language})}" if language else path)
