"""Comparison and validation of names."""

import re
import unicodedata

from identity.domain.email_addresses import email_key
from identity.domain.messages import gettext_lazy

_DOMAIN = re.compile(r"(?=.{1,253}\Z)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*\Z")
_USER_NAME_FORBIDDEN = re.compile(r"[\s@/\\]")

MAX_NAME_LENGTH = 200
#: Limit of the normalized name in bytes: NFKC may expand characters, and indexes have limits.
_KEY_LENGTH = 4 * MAX_NAME_LENGTH


#: No login name, including its domain, is longer. Requests may contain longer ones, and a character may expand to
#: eighteen.
_LONGEST_COMPARED = 500
#: Characters that NFKC maps to @.
_DISGUISED = str.maketrans("﹫＠", "@@")


def name_key(name: str) -> str:
    """Equal for two spellings of one name: NFKC, case-folded, without surrounding space."""
    known = name[:_LONGEST_COMPARED]
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", known).casefold()).strip()


def split_login_name(login_name: str) -> tuple[str, str]:
    """User name and domain of a login name as typed; the domain is empty for a bare name. The only place where login
    names are split; ``identity.domain.login_names`` carries the result."""
    user_name, at, domain = login_name[:_LONGEST_COMPARED].translate(_DISGUISED).rpartition("@")
    return (user_name.strip(), domain.strip()) if at else (domain.strip(), "")


def login_name_key(login_name: str) -> tuple[str, str]:
    """Normalized user name and domain of a login name; the domain is empty for a bare name."""
    user_name, domain = split_login_name(login_name)
    return name_key(user_name), _domain_key(domain)


def full_login_name(login_name: str, domain: str) -> str:
    """The login name with the given domain, unless it has its own."""
    return login_name if split_login_name(login_name)[1] else f"{login_name}@{domain}"


def _domain_key(domain: str) -> str:
    """The domain in lower case and as A-labels (RFC 5890 §2.3.2.1)."""
    text = unicodedata.normalize("NFKC", domain).lower().strip()
    key = None if text.isascii() else email_key(f"x@{text}")
    return text if key is None else key.rpartition("@")[2]


def can_be_compared(name: str) -> bool:
    """False if the normalized name is too long for an index."""
    return len(name_key(name).encode("utf-8", "replace")) <= _KEY_LENGTH


def is_printable(text: str) -> bool:
    """False if the text contains control, format, surrogate or unassigned characters."""
    return not any(unicodedata.category(character) in ("Cc", "Cf", "Cs", "Cn", "Co") for character in text)


def display_name_error(name: str, *, length: int = MAX_NAME_LENGTH) -> str | None:
    """What is wrong with a display name, as a sentence, or None."""
    if not name.strip():
        return gettext_lazy("Enter a name.")
    if len(name) > length:
        return gettext_lazy("Use at most {length} characters.", length=length)
    if not is_printable(name) or not can_be_compared(name):
        return gettext_lazy("Use printable characters only.")
    return None


def user_name_error(name: str) -> str | None:
    """What is wrong with a user name, as a sentence, or None. An @ is refused because it separates the user name from
    the organization's domain in a login name."""
    if not name.strip():
        return gettext_lazy("Enter a user name.")
    if len(name) > MAX_NAME_LENGTH:
        return gettext_lazy("Use at most {length} characters.", length=MAX_NAME_LENGTH)
    # Also in other forms: "＠" compares equal to "@".
    forbidden = any(_USER_NAME_FORBIDDEN.search(form) for form in (name, name_key(name)))
    if forbidden or not is_printable(name) or not can_be_compared(name):
        return gettext_lazy("Use letters, digits and punctuation, without spaces, @ or slashes.")
    return None


def domain_name_error(domain: str) -> str | None:
    """What is wrong with a primary domain, as a sentence, or None."""
    if _DOMAIN.match(domain):
        return None
    return gettext_lazy("Enter a domain such as acme.example: lower-case letters, digits, hyphens and dots.")


def domain_from_name(name: str, host: str, *, number: int | None = None) -> str:
    """A primary domain derived from an organization's name below ``host``: "Acme GmbH" → acme-gmbh.host. With a number,
    an alternative: acme-gmbh-2.host."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    label = re.sub(r"[^a-z0-9]+", "-", ascii_name).strip("-") or "organization"
    end = "" if number is None else f"-{number}"
    return f"{label[: 63 - len(end)].strip('-')}{end}.{host}"
