"""PageRenderer renders templates; a process has one, ``registry.pages``."""

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

from identity.cached_property import cached_property
from identity.domain.login_names import LoginName
from identity.domain.messages import LANGUAGES
from identity.http import csrf
from identity.http.endpoint_routes import PROTOCOL_ROUTE_PREFIX
from identity.http.language_negotiation import UI_LOCALES_PARAM, RequestLanguage
from identity.http.security_headers import SIGN_IN_POLICY
from identity.pages.datetime_formatting import DatetimeFormatter, format_relative_time, user_time_zone
from identity.pages.layout import AccountMenuEntry, avatar_tone, name_initials
from identity.pages.page_branding import DEFAULT_PAGE_BRANDING
from identity.pages.static_files import FOLDER, StaticFiles
from identity.pages.themes import request_theme
from identity.pages.translation import MessageCatalogs, Translator
from identity.provider.protocol_request import FormPost

if TYPE_CHECKING:
    from jinja2 import Environment

    from identity.application import IdentityApplication

#: Only templates with this suffix use our settings of whitespace and undefined names.
RENDERER_SUFFIX = ".html"

#: The logo's link.
ACCOUNT_PATH = "/account"

_TEMPLATES = "identity.pages:templates"
_CONFIG_ORDER = 2


class PageRenderer:
    def __init__(self, registry: Registry, style: Path | None) -> None:
        self._registry = registry
        self.static = StaticFiles()
        self.catalogs = MessageCatalogs()
        #: Entries that plugins add to the account menu.
        self.menu: list[AccountMenuEntry] = []
        #: The frame of the console for pages of other plugins below its paths; None without the console. It gets the
        #: request, the route's context and the current section, and returns variables of ``layout.html``.
        self.console_frame: Callable[[Any, Any, str], Mapping[str, object]] | None = None
        #: Sections that plugins add to the account (identity.pages.account_extensions).
        self.security_sections: list[Any] = []
        self.account_fragments: list[Any] = []
        self.account_data: dict[str, Any] = {}
        #: What plugins add below the first two steps of a sign-in; each gets the page and returns markup.
        self.sign_in_options: list[Callable[[Any], Iterable[Markup]]] = []
        #: The next path for a login name, or None; each gets the page and the name.
        self.login_name_redirects: list[Callable[[Any, LoginName], str | None]] = []
        #: Where a logout elsewhere ends, or None; each gets the request and the id of the pending one.
        self.logout_returns: list[Callable[[Request, str], Response | None]] = []
        #: The banner of an impersonated session, and the page after its end, by the id of the person.
        self.load_impersonation_banner: Callable[[Request], object] = lambda request: None
        self.impersonation_return_path: Callable[[str], str] = lambda user_id: "/"
        for path in sorted(FOLDER.iterdir()):
            self.static.add_file(path)
        self.operator_style = None if style is None else self.static.add_file(style)

    @cached_property
    def environment(self) -> "Environment":
        """The Jinja environment; available once the configuration is complete."""
        from pyramid_jinja2 import IJinja2Environment

        environment: Environment = self._registry.getUtility(IJinja2Environment, name=RENDERER_SUFFIX)
        return environment

    @cached_property
    def text_environment(self) -> "Environment":
        return self.environment.overlay(autoescape=False)

    @cached_property
    def brand_name(self) -> str:
        """The service's name in mails, which are rendered without a request."""
        known: dict[str, object] = {"t": self.catalogs.translator(LANGUAGES[0]).gettext, "static": self.static.url_path}
        module: Any = self.environment.get_template("brand.html").make_module(known)
        return str(module.brand_name)

    def render(
        self,
        request: Request,
        template: str,
        variables: Mapping[str, object],
        *,
        status: int = 200,
        language: str | None = None,
    ) -> Response:
        """The rendered response; without ``language``, in the request's language."""
        known = self._template_globals(request, language or RequestLanguage.negotiate(request))
        text = self.environment.get_template(template).render({**known, **variables})
        return Response(text.encode(), status=status, content_type="text/html", charset="utf-8")

    def render_fragment(
        self, request: Request, template: str, variables: Mapping[str, object], *, language: str
    ) -> Markup:
        known = {**self._template_globals(request, language), "ui": self.load_macros(request, language)}
        return Markup(self.environment.get_template(template).render({**known, **variables}))  # noqa: S704 - escaped there

    def load_macros(self, request: Request, language: str, template: str = "macros.html") -> Any:
        """The macros that templates know as ``ui``, for markup made in Python: those that need no form. Those of
        ``components.html`` are known as ``parts``.
        """
        return self.environment.get_template(template).make_module(self._template_globals(request, language))

    def _template_globals(self, request: Request, language: str) -> dict[str, object]:
        translator = self.catalogs.translator(language)
        identity: IdentityApplication = self._registry.application
        return {
            "t": translator.gettext,
            "tn": translator.ngettext,
            "listed": translator.format_list,
            "number": translator.format_number,
            "lang": translator.language,
            "language_line": _language_links(request),
            "distance": lambda moment: format_relative_time(moment, identity.clock(), translator),
            "times": DatetimeFormatter(translator.language, partial(_time_zone, request)),
            "static": partial(self.static.url_path, theme=request_theme(request)),
            "theme": request_theme(request),
            "operator_style": self.operator_style,
            "looks": DEFAULT_PAGE_BRANDING,
            "csrf_token": partial(csrf.csrf_token, request),
            "impersonation": partial(self.load_impersonation_banner, request),
            "here": request.environ.get("PATH_INFO", "/"),
            "home": ACCOUNT_PATH,
            "initials": name_initials,
            "avatar_tone": avatar_tone,
            "form": None,
            "failed": False,
        }

    def render_form_post(self, request: Request, form: FormPost) -> Response:
        """The page that posts an authorization response to a client (OAuth 2.0 Form Post Response Mode)."""
        variables = {"action": form.action, "fields": form.fields, "application": form.application}
        response = self.render(request, "form_post.html", variables)
        response.headers["Content-Security-Policy"] = SIGN_IN_POLICY
        response.headers["X-Frame-Options"] = "DENY"
        return response


def see_other(request: Request, path: str) -> Response:
    """303 to a path on the login host. Its origin comes from the settings: behind a proxy the request does not know
    it.
    """
    identity: IdentityApplication = request.registry.application
    location = identity.settings.login_url + path
    return Response(status=303, headerlist=[("Location", location), ("Content-Length", "0")])


def _language_links(request: Request) -> list[tuple[str, str, str]]:
    """Code, name and, for pages without a form, URL of each language.

    Empty on protocol endpoints: parameters of a client must not be repeated on a page.
    """
    route = getattr(request, "matched_route", None)
    if route is not None and route.name.startswith(PROTOCOL_ROUTE_PREFIX):
        return []
    try:
        parameters = [(name, value) for name, value in request.GET.items() if name != UI_LOCALES_PARAM]
    except UnicodeDecodeError:
        parameters = []
    return [
        (code, Translator.LANGUAGE_NAMES[code], "?" + urlencode([*parameters, (UI_LOCALES_PARAM, code)]))
        for code in LANGUAGES
    ]


def _time_zone(request: Request) -> tzinfo | None:
    return user_time_zone(None if request.signed_in_account is None else request.signed_in_account.subject)


def _override_name(template: str, parent: str) -> str:
    return template


def includeme(config: Configurator) -> None:
    """Template folders of the operator come before ours, ours before those of plugins."""
    from pyramid_jinja2 import add_jinja2_renderer, add_jinja2_search_path

    identity: IdentityApplication = config.registry.application
    pages = config.registry.pages = PageRenderer(config.registry, identity.settings.pages_style)
    # The http package uses this attribute only: it must not import pages.
    config.registry.render_form_post = pages.render_form_post
    # Not its includeme, which adds an unused renderer and reads the source of the whole stack.
    config.add_directive("add_jinja2_renderer", add_jinja2_renderer)
    config.add_directive("add_jinja2_search_path", add_jinja2_search_path)
    prefix = "identity_pages."
    options = {"undefined": "strict", "trim_blocks": "true", "lstrip_blocks": "true"}
    config.add_settings({prefix + name: value for name, value in options.items()})
    config.add_jinja2_renderer(RENDERER_SUFFIX, settings_prefix=prefix)
    for folder in (*(str(path.absolute()) for path in identity.settings.pages_templates), _TEMPLATES):
        config.add_jinja2_search_path(folder, name=RENDERER_SUFFIX)
    config.add_directive("add_page_templates", add_page_templates)
    config.add_directive("add_catalogs", add_catalogs)

    def finish() -> None:
        # By default it names a template after its includer, and compiles the macros again for each page.
        environment: Any = pages.environment
        environment.join_path = _override_name

    config.action(None, finish, order=_CONFIG_ORDER)


def add_page_templates(config: Configurator, folder: str) -> None:
    """Directive: add a template folder of a plugin, ``package:folder``."""
    config.add_jinja2_search_path(folder, name=RENDERER_SUFFIX)


def add_catalogs(config: Configurator, folder: Path) -> None:
    """Directive: add a plugin's folder with ``{language}/LC_MESSAGES/identity.po``."""
    config.registry.pages.catalogs.folders.append(folder)
