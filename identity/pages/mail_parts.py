"""What a mail says: its parts, made of a template and the words of an organization, and how they are put together."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from identity.pages.drawing import Pages
from identity.pages.looks import Looks
from identity.pages.translation import Words

#: What stands by itself and leads somewhere.
_ADDRESS = re.compile(r"https?://\S+")


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph; one that is an address alone is a link."""

    text: str

    @property
    def address(self) -> bool:
        """True for an address."""
        return _ADDRESS.fullmatch(self.text) is not None


@dataclass(frozen=True, kw_only=True)
class MailParts:
    """Subject, paragraphs, and what stands below; ``name`` is whose mail it is."""

    subject: str
    blocks: tuple[Block, ...]
    foot: tuple[str, ...]
    name: str
    looks: Looks

    @property
    def text(self) -> str:
        """The mail as plain text."""
        return "\n\n".join((*(one.text for one in self.blocks), *self.foot)) + "\n"


def parts_of(pages: Pages, template: str, values: Mapping[str, object], words: Words, looks: Looks) -> MailParts:
    """The parts of a mail. The template is text, whose first line is the subject; no paragraph of it is empty."""
    drawn = pages.text_environment.get_template(f"mails/{template}.txt").render({"t": words.plain, **values})
    subject, _, rest = drawn.strip().partition("\n")
    said = [looks.mail_intro, *(part.strip() for part in re.split(r"\n\s*\n", rest))]
    support = words.plain("Do you need help? {support}", support=looks.support) if looks.support else ""
    return MailParts(
        subject=subject.strip(),
        blocks=tuple(Block(one) for one in said if one),
        foot=tuple(one for one in (looks.mail_footer, support) if one),
        name=looks.name or pages.brand_name,
        looks=looks,
    )


def html_of(pages: Pages, parts: MailParts, words: Words, *, template: str = "mail") -> str:
    """The mail as HTML; ``body`` is what stands on its page, for other pages to show."""
    known = {name: getattr(parts, name) for name in ("subject", "blocks", "foot", "name", "looks")}
    drawn = pages.environment.get_template(f"mails/{template}.html").render(
        {"t": words.t, "lang": words.language, "linked": template == "mail", **known}
    )
    return str(drawn)
