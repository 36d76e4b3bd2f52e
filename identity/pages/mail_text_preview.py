"""Mails with sample values, to see own texts as they are sent."""

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup
from pyramid.request import Request

from identity.domain.mail_texts import MailKind, MailText
from identity.domain.organizations import Organization
from identity.pages.branding_preview import preview_stylesheet_path
from identity.pages.mail_rendering import render_mail_content, render_mail_html
from identity.pages.page_branding import load_page_branding
from identity.pages.rendering import PageRenderer
from identity.pages.transactional_mails import TransactionalMails
from identity.pages.translation import Translator
from identity.services.mails import Mail

_SAMPLE_CODE = "123456"


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleMail:
    """A mail as it is sent, and its content for a page, which needs the style sheet."""

    mail: Mail
    body: Markup
    stylesheet_path: str


def render_sample_mail(
    request: Request, kind: MailKind, custom: MailText, organization: Organization | None, translator: Translator
) -> SampleMail:
    """The mail with the text ``own`` and the branding of the organization. Its link leads nowhere."""
    pages: PageRenderer = request.registry.pages
    looks = load_page_branding(request.services, organization, None, translator.language)
    values = _sample_values(request, organization, translator)
    if looks.organization:
        values = {**values, "organization": looks.organization}
    content = render_mail_content(pages, kind, values, translator, looks, custom)
    return SampleMail(
        mail=Mail(
            to="",
            subject=content.subject,
            text=content.text,
            html=render_mail_html(pages, content, translator),
            sender=looks.mail_sender,
        ),
        body=Markup(render_mail_html(pages, content, translator, template="body")),  # noqa: S704 - our template
        stylesheet_path=preview_stylesheet_path(looks),
    )


def _sample_values(request: Request, organization: Organization | None, translator: Translator) -> Mapping[str, object]:
    settings, now = request.registry.application.settings, request.services.now
    domain, name = (
        ("acme.example", "Acme") if organization is None else (organization.primary_domain, organization.name)
    )
    login_name, link = f"anna@{domain}", f"{settings.login_url}/password/reset/…"
    return {
        "login_name": login_name,
        "person_name": "Anna Example",
        "organization": name,
        "inviter": "",
        "link": link,
        "code": _SAMPLE_CODE,
        "works_once": TransactionalMails.describe_link_validity(settings.one_time_link_ttl, translator),
        "sign_in_url": f"{settings.login_url}/login",
        "reset_url": f"{settings.login_url}/password/reset",
        "account_url": f"{settings.login_url}/account",
        "accounts": [{"login_name": login_name, "link": link}],
        "login_names": [login_name],
        "at": f"{now:%Y-%m-%d %H:%M} UTC",
        "day": f"{now:%Y-%m-%d}",
        "device": "Firefox",
        "what": translator.gettext_plain("Passkey"),
        "left": 3,
        "address": "192.0.2.1",
        "impersonator": "Ben Example",
        **dict.fromkeys(("name", "password", "to_change", "reason", "place"), ""),
    }
