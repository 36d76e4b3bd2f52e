"""OneTimeLinkPage, the base class of pages behind links; they use the frame of the sign-in pages."""

from urllib.parse import urlencode

from pyramid.response import Response

from identity.api.entities import Application, Organization
from identity.api.pages import Page


class OneTimeLinkPage(Page):
    """A page that needs no session."""

    @property
    def link_secret(self) -> str:
        code: str = self.request.matchdict["code"]
        return code

    def branding_organization(self) -> Organization | None:
        """The link's organization, if known; the page has its branding."""
        return None

    def branding_owner(self) -> tuple[Organization | None, Application | None]:
        return self.branding_organization(), None

    def redirect_in_language(self, path: str) -> Response:
        """303 to a path, in the language chosen on this page."""
        language = self.request.GET.get(Page.UI_LOCALES_PARAM)
        return self.redirect(f"{path}?{urlencode({Page.UI_LOCALES_PARAM: language})}" if language else path)
