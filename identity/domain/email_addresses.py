"""When two spellings of an email address are one mailbox."""

import re
import unicodedata
from string import ascii_lowercase, ascii_uppercase

#: RFC 5321 §4.5.3.1.3.
_LONGEST = 254
_LONGEST_DOMAIN = 253
#: What `email_problem` allows before the @, and nothing that could end it.
_LOCAL_PART = re.compile(r"[^\s@<>()\[\],;:\\\"\x00-\x20\x7f]{1,64}\Z")
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")
_FOLDED = str.maketrans(ascii_uppercase, ascii_lowercase)


def email_key(address: str) -> str | None:
    """The form in which two spellings of one mailbox are equal; None for what is no address.

    A mail server may tell "ﬁona" from "fiona": the local part is compared byte by byte, except for the case of ASCII
    letters. The domain is what DNS is asked for: A-labels (RFC 5890 §2.3.2.1) in lower case.
    """
    local_part, at, domain = address.strip(" \t\r\n").rpartition("@")
    if not at or len(address) > _LONGEST or not _LOCAL_PART.match(local_part) or not _is_text(local_part):
        return None
    labels = [_a_label(label) for label in domain.split(".")]
    known = [label for label in labels if label is not None]
    name = ".".join(known)
    if len(known) < len(labels) or len(known) < 2 or len(name) > _LONGEST_DOMAIN:
        return None
    return f"{local_part.translate(_FOLDED)}@{name}"


def email_domain(address: str) -> str:
    """The domain of an address as DNS knows it; empty for what is no address."""
    return (email_key(address) or "").rpartition("@")[2]


def is_same_mailbox(first: str, second: str) -> bool:
    """True if both are addresses of one mailbox."""
    key = email_key(first)
    return key is not None and key == email_key(second)


def domain_spellings(address: str) -> tuple[str, str]:
    """The address with its domain as DNS knows it, and as people write it: both are kept as they were typed."""
    local_part = address.rpartition("@")[0]
    labels = email_domain(address).split(".")
    return tuple(f"{local_part}@{'.'.join(form)}" for form in (labels, map(_u_label, labels)))  # type: ignore[return-value]


def _u_label(label: str) -> str:
    try:
        return label[4:].encode().decode("punycode") if label.startswith("xn--") else label
    except UnicodeError:
        return label


def _a_label(label: str) -> str | None:
    """The label as DNS knows it, or None.

    Only the case of letters is mapped. Software disagrees about what else IDNA maps, so a label that needs more than
    that has no key: else a mail could go to another domain than the one that it is taken to prove.
    """
    if label.isascii():
        name = label.translate(_FOLDED)
    else:
        lowered = "".join(map(_lowered, label))
        if not unicodedata.is_normalized("NFC", label) or not unicodedata.is_normalized("NFKC", lowered):
            return None
        if lowered.isascii() or not all(item == "-" or _is_of_word(item) for item in lowered):
            return None
        name = f"xn--{lowered.encode('punycode').decode()}"
    return name if _LABEL.match(name) else None


def _lowered(character: str) -> str:
    """In lower case where that is beyond doubt: "ẞ" is "ß" for some and "ss" for others."""
    lowered = character.lower()
    sure = character.isascii() or (len(lowered) == 1 and not lowered.isascii() and lowered == character.casefold())
    return lowered if sure else character


def _is_of_word(character: str) -> bool:
    """True for letters, marks and digits; capitals are left over where their lower case is in doubt."""
    return unicodedata.category(character) in ("Ll", "Lo", "Lm", "Mn", "Mc", "Nd")


def _is_text(local_part: str) -> bool:
    return not any("\ud800" <= item <= "\udfff" for item in local_part)
