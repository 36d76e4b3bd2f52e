"""Serves the built documentation: files of one folder, with a Content-Security-Policy of their own."""

import base64
import hashlib
import re
from pathlib import Path

from pyramid.config import Configurator
from pyramid.httpexceptions import HTTPMovedPermanently
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED
from pyramid.static import static_view

from identity.api.pages import see_other

DOCS_PATH = "/docs"
LLMS_PATH = "/llms.txt"
ROUTE_NAME_PREFIX = "documentation."

START_PAGE = "index.html"
_LLMS_FILE = "llms.txt"
_MAX_AGE = 300
_INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_NOT_BUILT = "This installation has no documentation. In a checkout, run `make docs` and restart the service."


def build_content_security_policy(start_page: str) -> str:
    """The policy of all pages. The theme has style attributes and the same inline script on each page; the script is
    allowed by its hash (CSP Level 3, section 2.3.1).
    """
    digests = (hashlib.sha256(script.encode()).digest() for script in _INLINE_SCRIPT.findall(start_page))
    hashes = {f" 'sha256-{base64.b64encode(digest).decode()}'" for digest in digests}
    return (
        f"default-src 'none'; script-src 'self'{''.join(sorted(hashes))}; style-src 'self' 'unsafe-inline';"
        " img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self';"
        " frame-ancestors 'none'"
    )


class DocumentationViews:
    """The views. Without a built documentation each of them responds with 404 and says how to build it."""

    def __init__(self, folder: Path) -> None:
        start_page = folder / START_PAGE
        self._folder = folder
        self.is_built = start_page.is_file()
        policy = build_content_security_policy(start_page.read_text("utf-8")) if self.is_built else ""
        self._headers = {"Content-Security-Policy": policy, "Cache-Control": f"public, max-age={_MAX_AGE}"}
        # Otherwise it would remember every path that anyone requests.
        self._static_view = static_view(str(folder), use_subpath=True, index=START_PAGE, reload=True)

    def show_file(self, request: Request) -> Response:
        """One file, or the start page of a folder. Pyramid's static view refuses paths outside of the folder."""
        if not self.is_built:
            return _not_built()
        request.subpath = tuple(request.matchdict["subpath"])
        try:
            response: Response = self._static_view(None, request)
        except HTTPMovedPermanently:
            # Of a folder without a slash. The view's own redirect has the host that the proxy asked.
            return see_other(request, f"{request.path}/")
        response.headers.update(self._headers)
        return response

    def show_table_of_contents(self, request: Request) -> Response:
        """https://llmstxt.org: titles, sentences and links."""
        if not self.is_built:
            return _not_built()
        text = (self._folder / _LLMS_FILE).read_text("utf-8")
        response = Response(text, content_type="text/plain", charset="utf-8")
        response.cache_control = self._headers["Cache-Control"]
        return response

    def redirect_to_start(self, request: Request) -> Response:
        return see_other(request, f"{DOCS_PATH}/")


def _not_built() -> Response:
    return Response(_NOT_BUILT, status=404, content_type="text/plain", charset="utf-8")


def add_documentation_routes(config: Configurator, folder: Path) -> None:
    """On the host of the console, which links to the pages if the registry has their path."""
    views = DocumentationViews(folder)
    if views.is_built:
        config.registry["documentation_path"] = DOCS_PATH
    for name, path, view in (
        ("start", DOCS_PATH, views.redirect_to_start),
        ("file", f"{DOCS_PATH}/*subpath", views.show_file),
        ("llms", LLMS_PATH, views.show_table_of_contents),
    ):
        config.add_route(ROUTE_NAME_PREFIX + name, path, host="login", request_method="GET")
        config.add_view(view, route_name=ROUTE_NAME_PREFIX + name, permission=NO_PERMISSION_REQUIRED)
