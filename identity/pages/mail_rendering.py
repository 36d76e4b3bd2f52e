"""Mails as text and HTML, from a template and an organization's texts."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from identity.pages.page_branding import PageBranding
from identity.pages.rendering import PageRenderer
from identity.pages.translation import Translator

#: A paragraph that is only a URL.
_ADDRESS = re.compile(r"https?://\S+")


@dataclass(frozen=True, slots=True)
class MailParagraph:
    """A paragraph; one that is only a URL is a link."""

    text: str

    @property
    def is_link(self) -> bool:
        return _ADDRESS.fullmatch(self.text) is not None


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
    pages: PageRenderer, template: str, values: Mapping[str, object], translator: Translator, looks: PageBranding
) -> MailContent:
    """Render a text template, whose first line is the subject and which has no empty paragraph."""
    drawn = pages.text_environment.get_template(f"mails/{template}.txt").render(
        {"t": translator.gettext_plain, **values}
    )
    subject, _, rest = drawn.strip().partition("\n")
    paragraphs = [looks.mail_intro, *(part.strip() for part in re.split(r"\n\s*\n", rest))]
    support = translator.gettext_plain("Do you need help? {support}", support=looks.support) if looks.support else ""
    return MailContent(
        subject=subject.strip(),
        paragraphs=tuple(MailParagraph(item) for item in paragraphs if item),
        footer=tuple(item for item in (looks.mail_footer, support) if item),
        name=looks.name or pages.brand_name,
        branding=looks,
    )


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
