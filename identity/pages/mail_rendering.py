"""Mails as text and HTML, from a template and an organization's texts."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from identity.domain.mail_texts import NO_MAIL_TEXT, MailText, fill_placeholders, sanitize_name
from identity.pages.page_branding import PageBranding
from identity.pages.rendering import PageRenderer
from identity.pages.translation import Translator

#: A paragraph that is only a URL.
_ADDRESS = re.compile(r"https?://\S+")
_EMPTY_LINE = re.compile(r"\n\s*\n")


@dataclass(frozen=True, slots=True)
class MailParagraph:
    """A paragraph. One of the service (``is_own``) that is only a URL is a link; texts of others never are."""

    text: str
    is_own: bool = True

    @property
    def is_link(self) -> bool:
        return self.is_own and _ADDRESS.fullmatch(self.text) is not None


@dataclass(frozen=True, kw_only=True)
class MailContent:
    """Subject, paragraphs and footer; ``name`` is the sender's."""

    subject: str
    paragraphs: tuple[MailParagraph, ...]
    footer: tuple[str, ...]
    name: str
    branding: PageBranding

    @property
    def text(self) -> str:
        return "\n\n".join((*(paragraph.text for paragraph in self.paragraphs), *self.footer)) + "\n"


def render_mail_content(
    pages: PageRenderer,
    template: str,
    values: Mapping[str, object],
    translator: Translator,
    looks: PageBranding,
    custom: MailText = NO_MAIL_TEXT,
) -> MailContent:
    """Render a text template, whose first line is the subject and which has no empty paragraph. ``own`` surrounds its
    paragraphs, which always stay as they are.
    """
    drawn = pages.text_environment.get_template(f"mails/{template}.txt").render(
        {"t": translator.gettext_plain, **values}
    )
    subject, _, rest = drawn.strip().partition("\n")
    filling = _placeholder_values(pages, values, looks)
    paragraphs = [
        *_foreign_paragraphs(fill_placeholders(custom.intro, filling) or looks.mail_intro),
        *(MailParagraph(part.strip()) for part in _EMPTY_LINE.split(rest)),
        *_foreign_paragraphs(fill_placeholders(custom.closing, filling)),
    ]
    support = translator.gettext_plain("Do you need help? {support}", support=looks.support) if looks.support else ""
    return MailContent(
        subject=" ".join(fill_placeholders(custom.subject, filling).split()) or subject.strip(),
        paragraphs=tuple(item for item in paragraphs if item.text),
        footer=tuple(item for item in (looks.mail_footer, support) if item),
        name=looks.name or pages.brand_name,
        branding=looks,
    )


def _foreign_paragraphs(text: str) -> Iterator[MailParagraph]:
    return (MailParagraph(part.strip(), is_own=False) for part in _EMPTY_LINE.split(text))


def _placeholder_values(pages: PageRenderer, values: Mapping[str, object], looks: PageBranding) -> dict[str, str]:
    """Names, which users choose, cannot become a link."""
    service = sanitize_name(looks.name or pages.brand_name)
    login_name = " ".join(str(values.get("login_name", "")).split())
    return {
        "service": service,
        "organization": sanitize_name(str(values.get("organization", "")) or looks.organization) or service,
        "login_name": login_name,
        "name": sanitize_name(str(values.get("person_name", ""))) or login_name,
    }


def render_mail_html(pages: PageRenderer, parts: MailContent, translator: Translator, *, template: str = "mail") -> str:
    """The mail as HTML; ``body`` is the content of its page, for embedding in other pages."""
    known = {
        "subject": parts.subject,
        "paragraphs": parts.paragraphs,
        "footer": parts.footer,
        "name": parts.name,
        "looks": parts.branding,
    }
    drawn = pages.environment.get_template(f"mails/{template}.html").render(
        {"t": translator.gettext, "lang": translator.language, "linked": template == "mail", **known}
    )
    return str(drawn)
