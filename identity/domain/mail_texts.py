"""Own texts of the service's mails. They surround what the service says: its link, code and warnings always follow."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from identity.domain.messages import gettext_lazy
from identity.domain.names import is_printable


class MailKind(StrEnum):
    """The mails of the service: the name of each template."""

    INVITATION = "invitation"
    NEW_CREDENTIAL = "new_credential"
    PASSWORD_RESET = "password_reset"  # noqa: S105 - a name
    PASSWORD_RESET_ACCOUNTS = "password_reset_accounts"  # noqa: S105 - a name
    REGISTRATION_LINK = "registration_link"
    REGISTRATION_EXISTING_ACCOUNT = "registration_existing_account"
    REGISTERED = "registered"
    EMAIL_VERIFICATION = "email_verification"
    EMAIL_CODE = "email_code"
    NEW_BROWSER = "new_browser"
    EMAIL_CHANGED = "email_changed"
    PASSWORD_CHANGED = "password_changed"  # noqa: S105 - a name
    PASSWORD_SET = "password_set"  # noqa: S105 - a name
    FACTOR_ADDED = "factor_added"
    FACTOR_REMOVED = "factor_removed"
    FACTOR_RESET = "factor_reset"
    FACTOR_USED = "factor_used"
    FACTOR_SUSPECTED = "factor_suspected"
    AGENT_ADDED = "agent_added"
    REPORTED = "reported"
    IMPERSONATED = "impersonated"
    MANAGER_ROLES_ENDING = "manager_roles_ending"
    PROJECT_ROLES_ENDING = "project_roles_ending"
    DELETION_ASKED = "deletion_asked"
    DELETION_WITHDRAWN = "deletion_withdrawn"
    REMOVED = "removed"


#: Mails about accounts of several organizations, and about what a manager has done as a person, which managers of an
#: organization must not disguise: only the instance has texts for them.
INSTANCE_ONLY_KINDS = frozenset({MailKind.PASSWORD_RESET_ACCOUNTS, MailKind.IMPERSONATED})
#: Mails to an unverified address: they contain nothing that a requester could have chosen.
_TO_STRANGERS = frozenset(
    {MailKind.REGISTRATION_LINK, MailKind.REGISTRATION_EXISTING_ACCOUNT, MailKind.PASSWORD_RESET_ACCOUNTS}
)
_WITHOUT_NAME = _TO_STRANGERS | {MailKind.EMAIL_VERIFICATION}

MAX_SUBJECT_LENGTH = 120
MAX_TEXT_LENGTH = 1500
MAX_LINES = 25
_LONGEST_PLACEHOLDER_VALUE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class MailText:
    """``subject`` replaces that of the service, ``intro`` comes before its text and ``closing`` after it."""

    subject: str = ""
    intro: str = ""
    closing: str = ""

    @property
    def is_empty(self) -> bool:
        return not (self.subject or self.intro or self.closing)


#: The service's own words only.
NO_MAIL_TEXT = MailText()


@dataclass(frozen=True, slots=True, kw_only=True)
class MailTexts:
    """The own texts of the instance or of one organization, by mail and language."""

    texts: Mapping[str, Mapping[str, MailText]] = field(default_factory=dict)
    changed_at: datetime | None = None
    version: int = 0

    def find(self, template: str, language: str) -> MailText | None:
        return self.texts.get(template, {}).get(language)


def mail_text_placeholders(kind: MailKind) -> tuple[str, ...]:
    """The names of the placeholders that texts of this mail can contain."""
    about_person = () if kind in _TO_STRANGERS else ("login_name",)
    return ("service", "organization", *about_person, *(() if kind in _WITHOUT_NAME else ("name",)))


_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
#: What mail programs make a link of, and what could become such a thing with the value of a placeholder. Texts are in
#: NFKC, which turns other full stops and solidi into these.
_LINK = re.compile(r"//|\\\\|:/|\bwww\.|\S[.](?=[^\W\d_]{2}|\{)", re.IGNORECASE)
_TOUCHED_PLACEHOLDER = re.compile(r"[\w@/:.]\{|\}(?=[\w@/{])")
#: Mail programs fold signatures and quoted mails.
_FOLDED_LINE = re.compile(r"^(>|--|__)", re.MULTILINE)


def normalize_mail_text(text: MailText) -> MailText:
    """The text without surrounding space and superfluous empty lines."""
    return MailText(
        subject=" ".join(text.subject.split()),
        intro=_normalize_paragraphs(text.intro),
        closing=_normalize_paragraphs(text.closing),
    )


def _normalize_paragraphs(text: str) -> str:
    lines = "\n".join(line.strip() for line in text.replace("\r\n", "\n").split("\n"))
    return re.sub(r"\n{3,}", "\n\n", lines).strip()


def mail_text_errors(kind: MailKind, text: MailText, *, allows_links: bool) -> dict[str, str]:
    """What is wrong with a normalized text, by field. Texts of organizations cannot contain links, so that the only
    link of a mail is the service's."""
    problems = {
        "subject": _error(kind, text.subject, MAX_SUBJECT_LENGTH, 1, allows_links=allows_links),
        "intro": _error(kind, text.intro, MAX_TEXT_LENGTH, MAX_LINES, allows_links=allows_links),
        "closing": _error(kind, text.closing, MAX_TEXT_LENGTH, MAX_LINES, allows_links=allows_links),
    }
    return {name: problem for name, problem in problems.items() if problem is not None}


def _error(kind: MailKind, text: str, length: int, lines: int, *, allows_links: bool) -> str | None:
    if len(text) > length:
        return gettext_lazy("Use at most {length} characters.", length=length)
    if text.count("\n") >= lines:
        return gettext_lazy("Use at most {n} lines.", n=lines)
    if not is_printable(text.replace("\n", " ")):
        return gettext_lazy("Use printable characters only.")
    if _FOLDED_LINE.search(text):
        return gettext_lazy("Do not begin a line with >, -- or __: mail programs hide what follows.")
    names = mail_text_placeholders(kind)
    rest = _PLACEHOLDER.sub(lambda found: "" if found[1] in names else found[0], text)
    if "{" in rest or "}" in rest:
        known = ", ".join(f"{{{name}}}" for name in names)
        return gettext_lazy("Use only these placeholders: {names}.", names=known)
    plain = unicodedata.normalize("NFKC", text)
    if _TOUCHED_PLACEHOLDER.search(plain):
        return gettext_lazy("Put a space between a placeholder and letters or digits.")
    return None if allows_links else link_error(plain)


def link_error(text: str) -> str | None:
    """What is wrong with a text that must not contain anything that mail programs make a link of."""
    if not _LINK.search(unicodedata.normalize("NFKC", text)):
        return None
    return gettext_lazy("Leave out addresses of web pages and mailboxes, and put a space after each full stop.")


def fill_placeholders(text: str, values: Mapping[str, str]) -> str:
    """The text with the values; placeholders without a value stay out."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], ""), text)


#: What is removed from names: mail programs turn URLs into links.
_UNSAFE_NAME_CHARACTERS = re.compile(r"[^\w\s'’,&().-]+|[.](?!\s)")


def sanitize_name(name: str) -> str:
    """A name as it may stand in mails to other people: no URLs, limited length."""
    return " ".join(_UNSAFE_NAME_CHARACTERS.sub(" ", name).split())[:_LONGEST_PLACEHOLDER_VALUE].strip()
