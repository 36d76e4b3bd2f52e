"""Compares email addresses."""

import re
import unicodedata
from string import ascii_lowercase, ascii_uppercase

#: RFC 5321 §4.5.3.1.3.
_LONGEST = 254
_LONGEST_DOMAIN = 253
#: Local parts that ``email_problem`` accepts, without characters that could end them.
_LOCAL_PART = re.compile(r"[^\s@<>()\[\],;:\\\"\x00-\x20\x7f]{1,64}\Z")
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")
_FOLDED = str.maketrans(ascii_uppercase, ascii_lowercase)


def email_key(address: str) -> str | None:
    """Equal for two spellings of one mailbox; None if the text is not an address. Mail servers may distinguish "ﬁona"
    and "fiona", so local parts are compared byte by byte, ignoring only the case of ASCII letters. Domains are compared
    as lower-case A-labels (RFC 5890 §2.3.2.1)."""
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
    """The domain of an address in DNS form; empty if the text is not an address."""
    return (email_key(address) or "").rpartition("@")[2]


def is_same_mailbox(first: str, second: str) -> bool:
    key = email_key(first)
    return key is not None and key == email_key(second)


def domain_spellings(address: str) -> tuple[str, str]:
    """The address with its domain in DNS form and in Unicode form, because both are stored as typed."""
    local_part = address.rpartition("@")[0]
    labels = email_domain(address).split(".")
    return tuple(f"{local_part}@{'.'.join(form)}" for form in (labels, map(_u_label, labels)))  # type: ignore[return-value]


def _u_label(label: str) -> str:
    try:
        return label[4:].encode().decode("punycode") if label.startswith("xn--") else label
    except UnicodeError:
        return label


def _a_label(label: str) -> str | None:
    """The label in DNS form, or None. Only the case of letters is mapped. Implementations disagree about other IDNA
    mappings, so labels that need them have no key: mail could otherwise go to another domain than the verified one."""
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
    """Lower case where it is unambiguous: "ẞ" becomes "ß" or "ss", depending on the implementation."""
    lowered = character.lower()
    sure = character.isascii() or (len(lowered) == 1 and not lowered.isascii() and lowered == character.casefold())
    return lowered if sure else character


def _is_of_word(character: str) -> bool:
    """True for letters, marks and digits, except capitals without an unambiguous lower case."""
    return unicodedata.category(character) in ("Ll", "Lo", "Lm", "Mn", "Mc", "Nd")


def _is_text(local_part: str) -> bool:
    return not any("\ud800" <= item <= "\udfff" for item in local_part)
