"""The documentation of this version under /docs, and /llms.txt, its table of contents for language models."""

from pathlib import Path
from typing import TYPE_CHECKING

from identity.api.plugins import hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyramid.config import Configurator

    from identity.api.pages import NavigationItem

#: ``make docs`` builds it; wheels contain it.
BUILT_FOLDER = Path(__file__).parent / "html"


class DocumentationPlugin:
    """The documentation under ``/docs``, public and without any data of the service, and ``/llms.txt``."""

    hookspecs = 1

    @hookimpl
    def identity_configure(self, config: "Configurator") -> None:
        """Adds the routes."""
        from identity.plugins.documentation.views import add_documentation_routes

        config.include("identity.pages")
        add_documentation_routes(config, BUILT_FOLDER)

    @hookimpl(optionalhook=True)
    def console_navigation(self) -> "Iterable[NavigationItem]":
        """A link to the start page of a built documentation."""
        from identity.api.pages import NavigationItem, gettext_lazy
        from identity.plugins.documentation.views import DOCS_PATH, START_PAGE

        if not (BUILT_FOLDER / START_PAGE).is_file():
            return []
        return [NavigationItem(label=gettext_lazy("Documentation"), href=f"{DOCS_PATH}/", icon="info")]
