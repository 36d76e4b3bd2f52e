"""/theme: choose the colour theme of this browser; the account menu posts here."""

from pyramid.config import Configurator
from pyramid.response import Response

from identity.pages.forms import Form
from identity.pages.page import FormPage, Page
from identity.pages.signed_in_page import SignedInPage
from identity.pages.themes import parse_theme, theme_cookie_header


class ThemePage(SignedInPage, FormPage):
    """A page without content: the buttons are in the menu of every page."""

    def template_variables(self) -> Response:
        return self.redirect(Page.ACCOUNT_PATH)

    def submit(self, form: Form) -> Response:
        """Keep the theme in a cookie, and go back to the page, which is one of this host."""
        target = form.text("target")
        is_path = target.startswith("/") and target.isascii() and target.isprintable()
        response = self.redirect(target if is_path else Page.ACCOUNT_PATH)
        response.headerlist.append(theme_cookie_header(self.request, parse_theme(form.text("theme"))))
        return response


def includeme(config: Configurator) -> None:
    config.add_page(
        "pages.theme",
        SignedInPage.THEME_PATH,
        ThemePage,
        permission=Page.SIGNED_IN_PERMISSION,
        authenticate="session",
    )
