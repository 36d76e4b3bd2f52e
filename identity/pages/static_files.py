"""Style sheet, scripts and logo: read once, served under names with a hash of the content, cacheable forever."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyramid.config import Configurator
from pyramid.httpexceptions import HTTPNotFound
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.http.health import ImmediateResponse
from identity.pages.themes import DARK_QUERY, Theme, apply_theme
from identity.provider.protocol_request import ProtocolResponse

FOLDER = Path(__file__).parent / "static"
ROUTE = "pages.static"

_PREFIX = "/static/"
_PATTERN = "/static/{name}"
_ACTION_ORDER = 10_000
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".png": "image/png"}
#: For URLs that name their content.
IMMUTABLE_CACHE_CONTROL = "public, max-age=31536000, immutable"
_HEADERS = {
    "Cache-Control": IMMUTABLE_CACHE_CONTROL,
    # An SVG that is opened directly is a document.
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
}


@dataclass(frozen=True)
class StaticFile:
    name: str
    content: bytes
    content_type: str


class StaticFiles:
    def __init__(self) -> None:
        self._served: dict[str, StaticFile] = {}
        self._addresses: dict[tuple[str, Theme], str] = {}

    def add_file(self, path: Path) -> str:
        """Read and serve a file; returns its name for ``url_path``. A later file replaces an earlier one of the same
        name. A style sheet that depends on the system's theme is served once for each theme.
        """
        content = path.read_bytes()
        self._add_content(path, Theme.SYSTEM, content)
        if path.suffix == ".css" and DARK_QUERY.encode() in content:
            for theme in (Theme.LIGHT, Theme.DARK):
                self._add_content(path, theme, apply_theme(content.decode(), theme).encode())
        return path.name

    def _add_content(self, path: Path, theme: Theme, content: bytes) -> None:
        stem = f"{path.stem}-{theme}" if theme else path.stem
        name = f"{stem}-{hashlib.sha256(content).hexdigest()[:16]}{path.suffix}"
        self._served[name] = StaticFile(name, content, _TYPES[path.suffix])
        self._addresses[path.name, theme] = _PREFIX + name

    def url_path(self, name: str, theme: Theme = Theme.SYSTEM) -> str:
        """The path of a file, for links. Raises KeyError for an unknown name."""
        return self._addresses.get((name, theme)) or self._addresses[name, Theme.SYSTEM]

    def find_file(self, served_name: str) -> StaticFile | None:
        return self._served.get(served_name)

    def __iter__(self) -> Iterator[StaticFile]:
        return iter(self._served.values())


def serve_static_file(request: Request) -> Response:
    """One file; 404 for an unknown name."""
    found = request.registry.pages.static.find_file(request.matchdict["name"])
    if found is None:
        raise HTTPNotFound
    response = Response(body=found.content, content_type=found.content_type, charset=_charset(found.content_type))
    response.headers.update(_HEADERS)
    return response


def _register_loop_responses(config: Configurator) -> None:
    """Let the event loop serve each file, without a thread."""
    registry = config.registry
    for found in registry.pages.static:
        charset = _charset(found.content_type)
        answer = ProtocolResponse(
            200,
            found.content,
            found.content_type if charset is None else f"{found.content_type}; charset={charset}",
            _HEADERS,
        )
        registry.immediate_responses[_PREFIX + found.name] = ImmediateResponse(
            ROUTE, _PATTERN, partial(_identity_response, answer), frozenset({"GET", "HEAD"})
        )


def _identity_response(answer: ProtocolResponse) -> ProtocolResponse:
    return answer


def _charset(content_type: str) -> str | None:
    return "utf-8" if content_type.startswith("text/") else None


def add_static_file(config: Configurator, path: Path) -> None:
    """Directive: serve a file of a plugin; templates link it with ``static("its name")``."""
    config.registry.pages.static.add_file(path)


def includeme(config: Configurator) -> None:
    """On any host: the page about an unknown host name needs the style sheet, too."""
    config.add_directive("add_static_file", add_static_file)
    config.add_route(ROUTE, _PATTERN, request_method="GET")
    config.add_view(serve_static_file, route_name=ROUTE, permission=NO_PERMISSION_REQUIRED)
    # After plugins have added their files.
    config.action(None, partial(_register_loop_responses, config), order=_ACTION_ORDER)
