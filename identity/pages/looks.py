"""Looks: how a page or mail looks for an organization or an application, in one language; and what serves that.

Colours are a style sheet that says nothing else: its address holds them, so nothing is looked up for it. A logo is
served as what it was made when it came, and may do nothing.
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
from identity.domain.branding import PLAIN, Branding, over
from identity.domain.colours import DARK, LIGHT, Accent, accent_of
from identity.domain.organizations import Organization
from identity.pages.static_files import FOR_EVER

if TYPE_CHECKING:
    from identity.services.bundle import Services

_PREFIX = "/branding/"
_STYLE = re.compile(r"([0-9a-f]{6})-([0-9a-f]{6})-([0-9a-f]{16})\.css")
#: The service's own accent, for mails, which have no style sheet.
_OWN_COLOURS = ("#2540ad", "#aebeff")


@dataclass(frozen=True, kw_only=True)
class Looks:
    """What templates need of it; what is empty is the service's own. Addresses of logo and style sheet are ours.

    ``name`` stands in the place of the service's, the others in that of the names that managers see.
    """

    name: str = ""
    application: str = ""
    organization: str = ""
    logo: str = ""
    logo_dark: str = ""
    style: str = ""
    title: str = ""
    support: str = ""
    terms_url: str = ""
    privacy_url: str = ""
    mail_sender: str = ""
    mail_intro: str = ""
    mail_footer: str = ""
    light: Accent = accent_of(_OWN_COLOURS[0], LIGHT)
    dark: Accent = accent_of(_OWN_COLOURS[1], DARK)

    @property
    def support_href(self) -> str:
        """Where a link to the support leads."""
        return self.support if self.support.startswith("https://") or not self.support else f"mailto:{self.support}"

    @property
    def helps(self) -> bool:
        """True if there is anything to link to."""
        return bool(self.support or self.terms_url or self.privacy_url)


#: How it looks where nobody said anything.
OWN_LOOKS = Looks()


def looks_of(
    services: "Services", organization: Organization | None, application: Application | None, language: str
) -> Looks:
    """How it looks for whoever signs in to the application, or has to do with the organization."""
    lower = PLAIN if organization is None else services.branding.of(organization)
    upper = PLAIN if application is None else services.branding.of(application)
    if lower is PLAIN and upper is PLAIN:
        return OWN_LOOKS
    owner = application.id if application is not None and upper.logo else getattr(organization, "id", "")
    called = "" if organization is None else organization.name
    looks = dressed(over(upper, lower), language, logo_of=owner, called=called)
    return replace(looks, application=upper.display_name, organization=lower.display_name)


def dressed(branding: Branding, language: str, *, logo_of: str, called: str) -> Looks:
    """The looks of a branding, with the logo of the one of this id. ``called`` names a logo where nothing else does."""
    colours = branding.colours
    more: dict[str, Any] = {}
    if colours is not None:
        more = {"light": accent_of(colours[0], LIGHT), "dark": accent_of(colours[1], DARK)}
    return Looks(
        name=branding.display_name or (called if branding.logo else ""),
        logo=f"{_PREFIX}{logo_of}/{branding.logo}" if branding.logo else "",
        logo_dark=f"{_PREFIX}{logo_of}/{branding.logo_dark}" if branding.logo and branding.logo_dark else "",
        style="" if colours is None else style_address(colours),
        title=branding.login_title.get(language, ""),
        support=branding.support,
        terms_url=branding.terms_url,
        privacy_url=branding.privacy_url,
        mail_sender=branding.mail_sender.get(language, ""),
        mail_intro=branding.mail_intro.get(language, ""),
        mail_footer=branding.mail_footer.get(language, ""),
        **more,
    )


def style_address(colours: tuple[str, str]) -> str:
    """Where the style sheet of these colours is served: at another address, if we make it otherwise one day."""
    light, dark = (one.lower().removeprefix("#") for one in colours)
    return f"{_PREFIX}{light}-{dark}-{_digest(style_of(colours))}.css"


def style_of(colours: tuple[str, str]) -> str:
    """The colours of a page, in place of those of the style sheet before it."""
    light, dark = accent_of(colours[0], LIGHT), accent_of(colours[1], DARK)
    return f":root {{ {declared(light)} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {declared(dark)} }} }}\n"


def declared(accent: Accent) -> str:
    """An accent by the names that the style sheet has for it."""
    return (
        f"--color-accent: {accent.plain}; --color-accent-strong: {accent.strong}; --color-accent-soft: {accent.soft};"
        f" --color-on-accent: {accent.on}; --color-focus: {accent.plain};"
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def serve_style(request: Request) -> Response:
    """The style sheet of two colours; 404 under any address but that which we link."""
    found = _STYLE.fullmatch(request.matchdict["name"])
    colours = ("", "") if found is None else (f"#{found[1]}", f"#{found[2]}")
    if found is None or style_address(colours) != f"{_PREFIX}{found[0]}":
        raise HTTPNotFound
    style = style_of(colours).encode()
    return _kept(Response(body=style, content_type="text/css", charset="utf-8"), found[3])


def serve_logo(request: Request) -> Response:
    """The logo that somebody has now; 404 for any other."""
    name = request.matchdict["name"]
    picture = request.services.branding.logo(request.matchdict["owner"], name)
    if picture is None:
        raise HTTPNotFound
    return _kept(Response(body=picture.content, content_type=picture.content_type, charset=None), name)


def _kept(response: Response, tag: str) -> Response:
    """Cached for ever, as its address names its content. Opened by itself it is a document, and may do nothing."""
    response.headers["Cache-Control"] = FOR_EVER
    response.headers["ETag"] = f'"{tag}"'
    response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response.conditional_response = True
    return response


def includeme(config: Configurator) -> None:
    """Serve both, on the host of the pages."""
    views: dict[str, Any] = {"{name}": serve_style, "{owner}/{name}": serve_logo}
    for path, view in views.items():
        name = f"branding.{view.__name__.removeprefix('serve_')}"
        config.add_route(name, f"{_PREFIX}{path}", host="login", request_method="GET")
        config.add_view(view, route_name=name, permission=NO_PERMISSION_REQUIRED)
