"""Appearance and texts of sign-in pages and mails for an organization or application."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any

from identity.domain.colours import (
    DARK_SCHEME,
    dark_accent_problem,
    is_colour,
    light_accent_problem,
    nearest_readable_colour,
)
from identity.domain.entity import entity, mutable, read_only
from identity.domain.messages import LANGUAGES, gettext_lazy
from identity.domain.names import display_name_error, is_printable
from identity.domain.validators import allow_empty, email_problem

_ADDRESS_LENGTH = 500
MAX_TITLE_LENGTH = 100
MAX_MAIL_TEXT_LENGTH = 600

#: Characters that could make a sender's name look like an address.
_NOT_IN_SENDERS = frozenset('@<>",;:\\')


def page_url_error(text: str) -> str | None:
    good = text.startswith("https://") and len(text) <= _ADDRESS_LENGTH and is_printable(text)
    if good and not any(item in text for item in " \"'<>\\"):
        return None
    return gettext_lazy("Enter an address that starts with https://.")


def support_contact_error(text: str) -> str | None:
    if email_problem(text) is None or page_url_error(text) is None:
        return None
    return gettext_lazy("Enter an email address, or an address that starts with https://.")


def login_title_error(text: str) -> str | None:
    return display_name_error(text, length=MAX_TITLE_LENGTH)


def mail_sender_error(text: str) -> str | None:
    if not _NOT_IN_SENDERS.isdisjoint(text) or "=?" in text:
        return gettext_lazy("Use only a name, without an address.")
    return display_name_error(text, length=MAX_TITLE_LENGTH)


def mail_text_error(text: str) -> str | None:
    if len(text) > MAX_MAIL_TEXT_LENGTH:
        return gettext_lazy("Use at most {length} characters.", length=MAX_MAIL_TEXT_LENGTH)
    return None if is_printable(text.replace("\n", " ")) else gettext_lazy("Use printable characters only.")


def _in_each(problem: Callable[[str], str | None], texts: Mapping[str, str]) -> str | None:
    if not texts.keys() <= set(LANGUAGES):
        return gettext_lazy("Choose from {names}.", names=", ".join(LANGUAGES))
    return next((error for text in texts.values() if text.strip() and (error := problem(text))), None)


@entity
class Branding:
    """Appearance and texts of pages and mails. Empty members fall back to the organization's, then to the service's.
    ``login_title`` and the mail texts are by language. ``logo`` is the digest and extension of a sanitized image.
    ``logo_dark`` replaces it on dark pages; without it, the logo gets a light background there."""

    display_name: str = mutable(default="", validator=allow_empty(display_name_error))
    accent: str = mutable(default="", validator=allow_empty(light_accent_problem))
    accent_dark: str = mutable(default="", validator=allow_empty(dark_accent_problem))
    support: str = mutable(default="", validator=allow_empty(support_contact_error))
    terms_url: str = mutable(default="", validator=allow_empty(page_url_error))
    privacy_url: str = mutable(default="", validator=allow_empty(page_url_error))
    login_title: Mapping[str, str] = mutable(default_factory=dict, validator=partial(_in_each, login_title_error))
    mail_sender: Mapping[str, str] = mutable(default_factory=dict, validator=partial(_in_each, mail_sender_error))
    mail_intro: Mapping[str, str] = mutable(default_factory=dict, validator=partial(_in_each, mail_text_error))
    mail_footer: Mapping[str, str] = mutable(default_factory=dict, validator=partial(_in_each, mail_text_error))
    logo: str = read_only(default="")
    logo_dark: str = read_only(default="")

    @property
    def accent_colours(self) -> tuple[str, str] | None:
        """The accent on light and on dark pages; None for the service's."""
        if not is_colour(self.accent):
            return None
        return self.accent, self.accent_dark if is_colour(self.accent_dark) else nearest_readable_colour(
            self.accent, DARK_SCHEME
        )


#: Branding where nothing is set.
DEFAULT_BRANDING = Branding()

#: Texts that exist in each language.
TEXT_FIELDS = ("login_title", "mail_sender", "mail_intro", "mail_footer")
#: Images; each name is a field of Branding and a kind of record.
LOGO_FIELDS = ("logo", "logo_dark")
#: The validator of each text.
TEXT_VALIDATORS: Mapping[str, Callable[[str], str | None]] = {
    "login_title": login_title_error,
    "mail_sender": mail_sender_error,
    "mail_intro": mail_text_error,
    "mail_footer": mail_text_error,
}
#: Colours that are chosen together.
_COLOURS = ("accent", "accent_dark")


def merge_branding(upper: Branding, lower: Branding) -> Branding:
    """The values of ``upper``, and of ``lower`` where ``upper`` is empty. Colours and logos are each taken together."""
    values: dict[str, Any] = {}
    for field in fields(Branding):
        above, below = getattr(upper, field.name), getattr(lower, field.name)
        if field.name in TEXT_FIELDS:
            values[field.name] = {**below, **above}
        elif field.name == "logo_dark":
            values[field.name] = above if upper.logo else below
        else:
            values[field.name] = above if above or (field.name in _COLOURS and upper.accent) else below
    return Branding(**values)
