"""A preview: the card of a sign-in and a mail as they would look, on a light and on a dark ground."""

import re
from collections.abc import Mapping

from markupsafe import Markup
from pyramid.config import Configurator
from pyramid.httpexceptions import HTTPNotFound
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.domain.colours import DARK, LIGHT, accent_of
from identity.pages.drawing import Pages
from identity.pages.looks import Looks, declared
from identity.pages.mail_parts import html_of, parts_of
from identity.pages.mails import works_once
from identity.pages.static_files import FOLDER
from identity.pages.translation import Words

_PATH = "/preview/{name}"
_NAME = re.compile(r"([0-9a-f]{6})-([0-9a-f]{6})\.css")
#: What pages that are previewed have for themselves: the tokens of the style sheet, which go by the system elsewhere.
_TOKENS = re.compile(r":root \{(.*?)\n\s*\}", re.DOTALL)


def style_address(looks: Looks) -> str:
    """Where the style sheet of a preview is served."""
    return _PATH.format(name=f"{looks.light.plain[1:]}-{looks.dark.plain[1:]}.css")


def variables(request: Request, looks: Looks, words: Words, *, login_name: str) -> Mapping[str, object]:
    """What the template ``looks/preview.html`` takes besides the names in it."""
    pages: Pages = request.registry.pages
    settings = request.registry.identity.settings
    values = {
        "login_name": login_name,
        "link": f"{settings.login_url}/password/reset/…",
        "works_once": works_once(settings.link_lifetime, words),
    }
    parts = parts_of(pages, "reset", values, words, looks)
    return {
        "previewed": looks,
        "preview_style": style_address(looks),
        "preview_t": words.t,
        "preview_lang": words.language,
        "preview_brand": pages.brand_name,
        "preview_subject": parts.subject,
        "preview_mail": Markup(html_of(pages, parts, words, template="body")),  # noqa: S704 - our template
    }


def _style(request: Request) -> Response:
    """The style sheet of two colours: what is previewed follows no system."""
    found = _NAME.fullmatch(request.matchdict["name"])
    if found is None:
        raise HTTPNotFound
    light, dark = accent_of(f"#{found[1]}", LIGHT), accent_of(f"#{found[2]}", DARK)
    sheet = (FOLDER / "identity.css").read_text("utf-8")
    on_light, on_dark, *_ = _TOKENS.findall(sheet)
    pages: Pages = request.registry.pages
    mail = pages.environment.get_template("mails/mail.css").render({"looks": Looks(light=light, dark=dark)})
    parts = (
        f".looks--light {{ {on_light}\n{declared(light)} color-scheme: light; }}",
        f".looks--dark {{ {on_dark}\n{declared(dark)} color-scheme: dark; }}",
        mail,
    )
    response = Response(body="\n".join(parts).encode(), content_type="text/css", charset="utf-8")
    response.headers["Cache-Control"] = "private, max-age=3600"
    return response


def includeme(config: Configurator) -> None:
    """Serve it: it holds nothing but colours."""
    config.add_route("preview.style", _PATH, host="login", request_method="GET")
    config.add_view(_style, route_name="preview.style", permission=NO_PERMISSION_REQUIRED)
