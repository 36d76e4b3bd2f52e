"""What a mail says: its parts, made of a template and the words of an organization, and how they are put together."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from identity.pages.page_branding import PageBranding
from identity.pages.rendering import PageRenderer
from identity.pages.translation import Translator

#: What stands by itself and leads somewhere.
_ADDRESS = re.compile(r"https?://\S+")


@dataclass(frozen=True, slots=True)
class MailParagraph:
    """A paragraph; one that is an address alone is a link."""

    text: str

    @property
    def is_link(self) -> bool:
        """True for an address."""
        return _ADDRESS.fullmatch(self.text) is not None


@dataclass(frozen=True, kw_only=True)
class MailContent:
    """Subject, paragraphs, and what stands below; ``name`` is whose mail it is."""

    subject: str
    paragraphs: tuple[MailParagraph, ...]
    footer: tuple[str, ...]
    name: str
    branding: PageBranding

    @property
    def text(self) -> str:
        """The mail as plain text."""
        return "\n\n".join((*(paragraph.text for paragraph in self.paragraphs), *self.footer)) + "\n"


def render_mail_content(
    pages: PageRenderer, template: str, values: Mapping[str, object], translator: Translator, looks: PageBranding
) -> MailContent:
    """The parts of a mail. The template is text, whose first line is the subject; no paragraph of it is empty."""
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
    """The mail as HTML; ``body`` is what stands on its page, for other pages to show."""
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
