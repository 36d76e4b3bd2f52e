"""The branding of a page or mail for an organization or application, in one language; and views that serve it.

A style sheet contains nothing but colours, and its URL names them: serving it reads no data. A logo is served with
the media type found at upload, and must not run scripts.
"""

import hashlib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyramid.config import Configurator
from pyramid.httpexceptions import HTTPNotFound
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.domain.applications import Application
from identity.domain.branding import DEFAULT_BRANDING, Branding, merge_branding
from identity.domain.colours import DARK_SCHEME, LIGHT_SCHEME, Accent, derive_accent
from identity.domain.organizations import Organization
from identity.pages.static_files import IMMUTABLE_CACHE_CONTROL
from identity.pages.themes import apply_theme, parse_theme

if TYPE_CHECKING:
    from identity.services.container import Services

_PREFIX = "/branding/"
_STYLE = re.compile(r"([0-9a-f]{6})-([0-9a-f]{6})-([0-9a-f]{16})\.css")
#: The service's own accent colours, for mails, which have no style sheet.
_DEFAULT_COLOURS = ("#2c41b8", "#aebcff")


@dataclass(frozen=True, kw_only=True)
class PageBranding:
    """Branding as templates use it; empty values stand for the service's own. Logo and style sheet have paths of ours.

    ``name`` replaces the service's name; the other names replace those that managers see.
    """

    name: str = ""
    application: str = ""
    organization: str = ""
    logo: str = ""
    logo_dark: str = ""
    stylesheet_path: str = ""
    title: str = ""
    support: str = ""
    terms_url: str = ""
    privacy_url: str = ""
    mail_sender: str = ""
    mail_intro: str = ""
    mail_footer: str = ""
    light: Accent = derive_accent(_DEFAULT_COLOURS[0], LIGHT_SCHEME)
    dark: Accent = derive_accent(_DEFAULT_COLOURS[1], DARK_SCHEME)

    @property
    def support_href(self) -> str:
        return self.support if self.support.startswith("https://") or not self.support else f"mailto:{self.support}"

    @property
    def has_footer_links(self) -> bool:
        return bool(self.support or self.terms_url or self.privacy_url)


#: The branding without any configuration.
DEFAULT_PAGE_BRANDING = PageBranding()


def load_page_branding(
    services: "Services", organization: Organization | None, application: Application | None, language: str
) -> PageBranding:
    """The branding for sign-ins to the application, or for pages of the organization."""
    lower = DEFAULT_BRANDING if organization is None else services.branding.own_branding(organization)
    upper = DEFAULT_BRANDING if application is None else services.branding.own_branding(application)
    if lower is DEFAULT_BRANDING and upper is DEFAULT_BRANDING:
        return DEFAULT_PAGE_BRANDING
    owner = application.id if application is not None and upper.logo else getattr(organization, "id", "")
    called = "" if organization is None else organization.name
    looks = build_page_branding(merge_branding(upper, lower), language, logo_owner_id=owner, fallback_name=called)
    return replace(looks, application=upper.display_name, organization=lower.display_name)


def build_page_branding(branding: Branding, language: str, *, logo_owner_id: str, fallback_name: str) -> PageBranding:
    """The page branding with the logo of ``logo_owner_id``. ``fallback_name`` is the logo's text alternative if the
    branding has no name.
    """
    colours = branding.accent_colours
    more: dict[str, Any] = {}
    if colours is not None:
        more = {"light": derive_accent(colours[0], LIGHT_SCHEME), "dark": derive_accent(colours[1], DARK_SCHEME)}
    return PageBranding(
        name=branding.display_name or (fallback_name if branding.logo else ""),
        logo=f"{_PREFIX}{logo_owner_id}/{branding.logo}" if branding.logo else "",
        logo_dark=f"{_PREFIX}{logo_owner_id}/{branding.logo_dark}" if branding.logo and branding.logo_dark else "",
        stylesheet_path="" if colours is None else stylesheet_path(colours),
        title=branding.login_title.get(language, ""),
        support=branding.support,
        terms_url=branding.terms_url,
        privacy_url=branding.privacy_url,
        mail_sender=branding.mail_sender.get(language, ""),
        mail_intro=branding.mail_intro.get(language, ""),
        mail_footer=branding.mail_footer.get(language, ""),
        **more,
    )


def stylesheet_path(colours: tuple[str, str]) -> str:
    """The URL has a version, so that a changed style sheet gets another one."""
    light, dark = (colour.lower().removeprefix("#") for colour in colours)
    digest = hashlib.sha256(render_stylesheet(colours).encode()).hexdigest()[:16]
    return f"{_PREFIX}{light}-{dark}-{digest}.css"


def render_stylesheet(colours: tuple[str, str]) -> str:
    """Colours that override those of the main style sheet."""
    light, dark = derive_accent(colours[0], LIGHT_SCHEME), derive_accent(colours[1], DARK_SCHEME)
    on_dark = f":root {{ {css_custom_properties(dark)} }}"
    return f":root {{ {css_custom_properties(light)} }}\n@media (prefers-color-scheme: dark) {{ {on_dark} }}\n"


def css_custom_properties(accent: Accent) -> str:
    """The style sheet's custom properties for an accent."""
    return (
        f"--color-accent: {accent.base}; --color-accent-strong: {accent.strong}; --color-accent-soft: {accent.soft};"
        f" --color-on-accent: {accent.foreground}; --color-focus: {accent.base};"
    )


def serve_stylesheet(request: Request) -> Response:
    """The style sheet for two colours; 404 at any URL that no page links to."""
    found = _STYLE.fullmatch(request.matchdict["name"])
    colours = ("", "") if found is None else (f"#{found[1]}", f"#{found[2]}")
    if found is None or stylesheet_path(colours) != f"{_PREFIX}{found[0]}":
        raise HTTPNotFound
    style = apply_theme(render_stylesheet(colours), parse_theme(request.params.get("theme", ""))).encode()
    return _cache_forever(Response(body=style, content_type="text/css", charset="utf-8"), found[3])


def serve_logo(request: Request) -> Response:
    """The current logo; 404 for any other."""
    name = request.matchdict["name"]
    picture = request.services.branding.find_logo(request.matchdict["owner"], name)
    if picture is None:
        raise HTTPNotFound
    return _cache_forever(Response(body=picture.content, content_type=picture.content_type, charset=None), name)


def _cache_forever(response: Response, tag: str) -> Response:
    """Cacheable forever, because the URL names the content. The policy disables scripts if it is opened as a
    document.
    """
    response.headers["Cache-Control"] = IMMUTABLE_CACHE_CONTROL
    response.headers["ETag"] = f'"{tag}"'
    response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response.conditional_response = True
    return response


def includeme(config: Configurator) -> None:
    views: dict[str, tuple[str, Any]] = {
        "branding.style": ("{name}", serve_stylesheet),
        "branding.logo": ("{owner}/{name}", serve_logo),
    }
    for name, (path, view) in views.items():
        config.add_route(name, f"{_PREFIX}{path}", host="login", request_method="GET")
        config.add_view(view, route_name=name, permission=NO_PERMISSION_REQUIRED)
