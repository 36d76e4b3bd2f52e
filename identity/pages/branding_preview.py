"""A preview of the sign-in card and a mail, with a light and a dark background."""

import re
from collections.abc import Mapping

from markupsafe import Markup
from pyramid.config import Configurator
from pyramid.httpexceptions import HTTPNotFound
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.domain.colours import DARK_SCHEME, LIGHT_SCHEME, derive_accent
from identity.pages.mail_rendering import render_mail_content, render_mail_html
from identity.pages.page_branding import PageBranding, css_custom_properties
from identity.pages.rendering import PageRenderer
from identity.pages.static_files import FOLDER
from identity.pages.transactional_mails import TransactionalMails
from identity.pages.translation import Translator

_PATH = "/preview/{name}"
_NAME = re.compile(r"([0-9a-f]{6})-([0-9a-f]{6})\.css")
#: The custom properties of the style sheet. A preview sets them itself; other pages follow the system's colour scheme.
_TOKENS = re.compile(r":root \{(.*?)\n\s*\}", re.DOTALL)


def preview_stylesheet_path(looks: PageBranding) -> str:
    return _PATH.format(name=f"{looks.light.base[1:]}-{looks.dark.base[1:]}.css")


def preview_variables(
    request: Request, looks: PageBranding, translator: Translator, *, login_name: str
) -> Mapping[str, object]:
    pages: PageRenderer = request.registry.pages
    settings = request.registry.application.settings
    values = {
        "login_name": login_name,
        "link": f"{settings.login_url}/password/reset/…",
        "works_once": TransactionalMails.describe_link_validity(settings.one_time_link_ttl, translator),
    }
    parts = render_mail_content(pages, "password_reset", values, translator, looks)
    return {
        "previewed": looks,
        "preview_style": preview_stylesheet_path(looks),
        "preview_t": translator.gettext,
        "preview_lang": translator.language,
        "preview_brand": pages.brand_name,
        "preview_subject": parts.subject,
        "preview_mail": Markup(render_mail_html(pages, parts, translator, template="body")),  # noqa: S704 - our template
    }


def _serve_preview_stylesheet(request: Request) -> Response:
    """The style sheet for two colours; it ignores the system's colour scheme."""
    found = _NAME.fullmatch(request.matchdict["name"])
    if found is None:
        raise HTTPNotFound
    light, dark = derive_accent(f"#{found[1]}", LIGHT_SCHEME), derive_accent(f"#{found[2]}", DARK_SCHEME)
    sheet = (FOLDER / "identity.css").read_text("utf-8")
    on_light, on_dark, *_ = _TOKENS.findall(sheet)
    pages: PageRenderer = request.registry.pages
    mail = pages.environment.get_template("mails/mail.css").render({"looks": PageBranding(light=light, dark=dark)})
    parts = (
        f".looks--light {{ {on_light}\n{css_custom_properties(light)} color-scheme: light; }}",
        f".looks--dark {{ {on_dark}\n{css_custom_properties(dark)} color-scheme: dark; }}",
        mail,
    )
    response = Response(body="\n".join(parts).encode(), content_type="text/css", charset="utf-8")
    response.headers["Cache-Control"] = "private, max-age=3600"
    return response


def includeme(config: Configurator) -> None:
    """Public: the style sheet contains nothing but colours."""
    config.add_route("preview.style", _PATH, host="login", request_method="GET")
    config.add_view(_serve_preview_stylesheet, route_name="preview.style", permission=NO_PERMISSION_REQUIRED)
