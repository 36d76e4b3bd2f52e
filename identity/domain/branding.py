"""Branding: how the pages of a sign-in and mails look for an organization or an application, and what they say."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any

from identity.domain.colours import DARK, dark_accent_problem, is_colour, light_accent_problem, nearest
from identity.domain.entity import entity, made, setting
from identity.domain.names import is_printable, name_problem
from identity.domain.rules import email_problem, unless_empty
from identity.domain.words import LANGUAGES, say

_ADDRESS_LENGTH = 500
TITLE_LENGTH = 100
MAIL_WORDS_LENGTH = 600

#: What a sender's name must not hold: it could pass for an address.
_NOT_IN_SENDERS = frozenset('@<>",;:\\')


def page_address_problem(text: str) -> str | None:
    """The address of a page that is not ours."""
    good = text.startswith("https://") and len(text) <= _ADDRESS_LENGTH and is_printable(text)
    if good and not any(one in text for one in " \"'<>\\"):
        return None
    return say("Enter an address that starts with https://.")


def support_problem(text: str) -> str | None:
    """Where people ask for help."""
    if email_problem(text) is None or page_address_problem(text) is None:
        return None
    return say("Enter an email address, or an address that starts with https://.")


def title_problem(text: str) -> str | None:
    """One line of a page."""
    return name_problem(text, length=TITLE_LENGTH)


def sender_problem(text: str) -> str | None:
    """The name from which mails come."""
    if not _NOT_IN_SENDERS.isdisjoint(text) or "=?" in text:
        return say("Use a name alone, without an address.")
    return name_problem(text, length=TITLE_LENGTH)


def mail_words_problem(text: str) -> str | None:
    """A few lines of a mail."""
    if len(text) > MAIL_WORDS_LENGTH:
        return say("Use at most {length} characters.", length=MAIL_WORDS_LENGTH)
    return None if is_printable(text.replace("\n", " ")) else say("Use printable characters only.")


def _in_each(problem: Callable[[str], str | None], texts: Mapping[str, str]) -> str | None:
    if not texts.keys() <= set(LANGUAGES):
        return say("Choose from {names}.", names=", ".join(LANGUAGES))
    return next((said for text in texts.values() if text.strip() and (said := problem(text))), None)


_IN_WORDS = say("Where a language has no words of yours, ours stand.")


@entity
class Branding:
    """How pages and mails look, and what they say. What is empty is the organization's, or else the service's.

    ``login_title`` and the words of mails are texts by language. ``logo`` names a picture that was made harmless:
    digest and ending. ``logo_dark`` stands in its place on dark pages; without one the logo has a light ground there.
    """

    display_name: str = setting(
        default="",
        rule=unless_empty(name_problem),
        label=say("Name on pages and in mails"),
        hint=say("Where people are to read another name than the one that managers see."),
    )
    accent: str = setting(
        default="",
        rule=unless_empty(light_accent_problem),
        label=say("Accent colour"),
        hint=say("The colour of buttons and links, for example {example}", example="#2540ad"),
    )
    accent_dark: str = setting(
        default="",
        rule=unless_empty(dark_accent_problem),
        label=say("Accent colour on dark pages"),
        hint=say("Empty: the nearest to the accent colour that is read well on dark pages."),
    )
    support: str = setting(
        default="",
        rule=unless_empty(support_problem),
        label=say("Support"),
        hint=say("An email address or a page where people get help."),
    )
    terms_url: str = setting(default="", rule=unless_empty(page_address_problem), label=say("Terms of use"))
    privacy_url: str = setting(default="", rule=unless_empty(page_address_problem), label=say("Privacy policy"))
    login_title: Mapping[str, str] = setting(
        default_factory=dict,
        rule=partial(_in_each, title_problem),
        label=say("Title of the sign-in page"),
        hint=_IN_WORDS,
    )
    mail_sender: Mapping[str, str] = setting(
        default_factory=dict,
        rule=partial(_in_each, sender_problem),
        label=say("Sender of mails"),
        hint=say("The name beside the address that mails come from."),
    )
    mail_intro: Mapping[str, str] = setting(
        default_factory=dict, rule=partial(_in_each, mail_words_problem), label=say("First words of mails")
    )
    mail_footer: Mapping[str, str] = setting(
        default_factory=dict, rule=partial(_in_each, mail_words_problem), label=say("Last words of mails")
    )
    logo: str = made(default="")
    logo_dark: str = made(default="")

    @property
    def colours(self) -> tuple[str, str] | None:
        """The accent on light and on dark pages; None if it is the service's."""
        if not is_colour(self.accent):
            return None
        return self.accent, self.accent_dark if is_colour(self.accent_dark) else nearest(self.accent, DARK)


#: What whoever has set nothing has.
PLAIN = Branding()

#: What is said in each language.
TEXTS = ("login_title", "mail_sender", "mail_intro", "mail_footer")
#: The pictures, each a field of a branding and a kind of record.
LOGOS = ("logo", "logo_dark")
#: The rule for one of these texts.
TEXT_RULES: Mapping[str, Callable[[str], str | None]] = {
    "login_title": title_problem,
    "mail_sender": sender_problem,
    "mail_intro": mail_words_problem,
    "mail_footer": mail_words_problem,
}
#: Colours that are chosen together.
_COLOURS = ("accent", "accent_dark")


def over(upper: Branding, lower: Branding) -> Branding:
    """One above another: what the upper says, and besides it what the lower says. Colours and logos stay together."""
    said: dict[str, Any] = {}
    for one in fields(Branding):
        above, below = getattr(upper, one.name), getattr(lower, one.name)
        if one.name in TEXTS:
            said[one.name] = {**below, **above}
        elif one.name == "logo_dark":
            said[one.name] = above if upper.logo else below
        else:
            said[one.name] = above if above or (one.name in _COLOURS and upper.accent) else below
    return Branding(**said)
