"""Pages: draws templates; one for a process, found as ``registry.pages``."""

from collections.abc import Callable, Iterable, Mapping
from datetime import tzinfo
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from markupsafe import Markup
from pyramid.config import Configurator
from pyramid.registry import Registry
from pyramid.request import Request
from pyramid.response import Response

from identity.domain.login_names import LoginName
from identity.domain.words import LANGUAGES
from identity.http import csrf
from identity.http.endpoints import PROTOCOL_ROUTE
from identity.http.headers import SIGN_IN_POLICY
from identity.http.locale import UI_LOCALES, language_of
from identity.lazily import lazily
from identity.pages.frame import MenuEntry
from identity.pages.looks import OWN_LOOKS
from identity.pages.moments import Times, distance, zone_of
from identity.pages.static_files import FOLDER, StaticFiles
from identity.pages.translation import LANGUAGE_NAMES, Catalogs
from identity.provider.request import FormPost

if TYPE_CHECKING:
    from jinja2 import Environment

    from identity.process import Identity

#: Templates with an ending of their own, whose whitespace and undefined names are treated in our way.
RENDERER = ".html"

#: Where the mark leads.
HOME = "/account"

_TEMPLATES = "identity.pages:templates"
_AFTER_THE_ENVIRONMENT = 2


class Pages:
    """Everything that drawing a page takes beside the page itself."""

    def __init__(self, registry: Registry, style: Path | None) -> None:
        self._registry = registry
        self.static = StaticFiles()
        self.catalogs = Catalogs()
        #: What plugins put into everybody's account menu.
        self.menu: list[MenuEntry] = []
        #: What plugins add to the account (identity.pages.account_sections).
        self.security_sections: list[Any] = []
        self.account_data: dict[str, Any] = {}
        #: What plugins put below the first two steps of a sign-in: given the page, markup for each.
        self.sign_in_options: list[Callable[[Any], Iterable[Markup]]] = []
        #: Where people go on after signing out: given the request, the sessions that end and the request that waits.
        #: Where people go on from the first step: given the page and the login name, a path or None.
        self.login_name_ways: list[Callable[[Any, LoginName], str | None]] = []
        for path in sorted(FOLDER.iterdir()):
            self.static.add(path)
        self.operator_style = None if style is None else self.static.add(style)

    @lazily
    def environment(self) -> "Environment":
        """Jinja's environment, once the configuration is done."""
        from pyramid_jinja2 import IJinja2Environment

        environment: Environment = self._registry.getUtility(IJinja2Environment, name=RENDERER)
        return environment

    @lazily
    def text_environment(self) -> "Environment":
        """The same for plain text, where nothing is escaped."""
        return self.environment.overlay(autoescape=False)

    @lazily
    def brand_name(self) -> str:
        """What the service calls itself, in mails, which are drawn without a request."""
        known = {"t": self.catalogs.words(LANGUAGES[0]).t, "static": self.static.address}
        module: Any = self.environment.get_template("brand.html").make_module(known)
        return str(module.brand_name)

    def draw(
        self,
        request: Request,
        template: str,
        variables: Mapping[str, object],
        *,
        status: int = 200,
        language: str | None = None,
    ) -> Response:
        """The template as an answer; without a language given, in the one that the request asks for."""
        known = self._known(request, language or language_of(request))
        text = self.environment.get_template(template).render({**known, **variables})
        return Response(text.encode(), status=status, content_type="text/html", charset="utf-8")

    def part(self, request: Request, template: str, variables: Mapping[str, object], *, language: str) -> Markup:
        """The template as a piece of a page, for what a plugin adds to pages of others."""
        known = {**self._known(request, language), "ui": self.macros(request, language)}
        return Markup(self.environment.get_template(template).render({**known, **variables}))  # noqa: S704 - escaped there

    def macros(self, request: Request, language: str) -> Any:
        """The macros that templates know as ``ui``, for markup that is made by a page: those that need no form."""
        return self.environment.get_template("macros.html").make_module(self._known(request, language))

    def _known(self, request: Request, language: str) -> dict[str, object]:
        words = self.catalogs.words(language)
        return {
            "t": words.t,
            "tn": words.tn,
            "listed": words.listed,
            "lang": words.language,
            "language_line": _language_line(request),
            "distance": partial(_distance, self._registry, words),
            "times": Times(words.language, partial(_zone, request)),
            "static": self.static.address,
            "operator_style": self.operator_style,
            "looks": OWN_LOOKS,
            "csrf_token": partial(csrf.token, request),
            "here": request.environ.get("PATH_INFO", "/"),
            "home": HOME,
            "form": None,
            "failed": False,
        }

    def form_post(self, request: Request, form: FormPost) -> Response:
        """The page that sends an answer on to a client (OAuth 2.0 Form Post Response Mode)."""
        variables = {"action": form.action, "fields": form.fields, "application": form.application}
        response = self.draw(request, "form_post.html", variables)
        response.headers["Content-Security-Policy"] = SIGN_IN_POLICY
        response.headers["X-Frame-Options"] = "DENY"
        return response


def redirect(request: Request, path: str) -> Response:
    """303 to a path on the login host, whose address the settings tell: behind a proxy the request does not know it."""
    identity: Identity = request.registry.identity
    location = identity.settings.login_url + path
    return Response(status=303, headerlist=[("Location", location), ("Content-Length", "0")])


def _language_line(request: Request) -> list[tuple[str, str, str]]:
    """Code, name and, for pages without a form, address of each language.

    None where the protocol answers: what a client sent is not repeated on a page.
    """
    route = getattr(request, "matched_route", None)
    if route is not None and route.name.startswith(PROTOCOL_ROUTE):
        return []
    try:
        parameters = [(name, value) for name, value in request.GET.items() if name != UI_LOCALES]
    except UnicodeDecodeError:
        parameters = []
    return [(code, LANGUAGE_NAMES[code], "?" + urlencode([*parameters, (UI_LOCALES, code)])) for code in LANGUAGES]


def _distance(registry: Registry, words: Any, moment: Any) -> str:
    identity: Identity = registry.identity
    return distance(moment, identity.clock(), words)


def _zone(request: Request) -> tzinfo | None:
    return zone_of(None if request.account is None else request.account.subject)


def _own_name(template: str, parent: str) -> str:
    return template


def includeme(config: Configurator) -> None:
    """Set up the environment: an operator's folders come before ours, ours before those of plugins."""
    from pyramid_jinja2 import add_jinja2_renderer, add_jinja2_search_path

    identity: Identity = config.registry.identity
    pages = config.registry.pages = Pages(config.registry, identity.settings.pages_style)
    # The rim knows it by this name alone: it stands below pages.
    config.registry.draw_form_post = pages.form_post
    # Not by its includeme, which sets up a renderer that nothing here uses, and reads the source of the whole stack.
    config.add_directive("add_jinja2_renderer", add_jinja2_renderer)
    config.add_directive("add_jinja2_search_path", add_jinja2_search_path)
    prefix = "identity_pages."
    options = {"undefined": "strict", "trim_blocks": "true", "lstrip_blocks": "true"}
    config.add_settings({prefix + name: value for name, value in options.items()})
    config.add_jinja2_renderer(RENDERER, settings_prefix=prefix)
    for folder in (*(str(path.absolute()) for path in identity.settings.pages_templates), _TEMPLATES):
        config.add_jinja2_search_path(folder, name=RENDERER)
    config.add_directive("add_page_templates", add_page_templates)
    config.add_directive("add_catalogs", add_catalogs)

    def finish() -> None:
        # By itself it would name a template after the one that uses it, and compile the macros anew for each page.
        environment: Any = pages.environment
        environment.join_path = _own_name

    config.action(None, finish, order=_AFTER_THE_ENVIRONMENT)


def add_page_templates(config: Configurator, folder: str) -> None:
    """Directive for plugins: search a folder of one's own, ``package:folder``, for templates."""
    config.add_jinja2_search_path(folder, name=RENDERER)


def add_catalogs(config: Configurator, folder: Path) -> None:
    """Directive for plugins: a folder with ``{language}/LC_MESSAGES/identity.po`` of one's own."""
    config.registry.pages.catalogs.folders.append(folder)
