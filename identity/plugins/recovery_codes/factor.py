"""The factor recovery_codes, and what its codes are."""

import secrets
from collections.abc import Mapping
from typing import Any, ClassVar

from identity.domain.enrolments import Enrolment
from identity.domain.messages import gettext_lazy, ngettext_lazy
from identity.domain.users import Subject
from identity.provider.factor import Factor
from identity.services.container import Services

#: How many there are, and how many are few.
CODE_COUNT, LOW_CODE_COUNT = 10, 3

#: Digits and letters of which none looks like another (Crockford's Base32): 5 bits each.
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
#: What people read or type instead.
_CONFUSABLES = str.maketrans("OIL", "011")
#: The first two letters tell which code it is, so that one hash is enough to verify it; ten are secret: 50 bits.
_PREFIX_LENGTH, _CODE_LENGTH, _GROUP_SIZE = 2, 12, 4


class RecoveryCodesFactor(Factor):
    """What is kept: of each code that is left the hash (argon2id), by its first letters."""

    name: ClassVar[str] = "recovery_codes"
    label: ClassVar[str] = gettext_lazy("Recovery codes")
    hint: ClassVar[str] = gettext_lazy("Ten codes on paper, for when you have lost everything else. Each works once.")
    methods: ClassVar[tuple[str, ...]] = ("otp",)
    icon: ClassVar[str] = "key"
    allows_multiple: ClassVar[bool] = False
    is_backup: ClassVar[bool] = True

    def can_enrol(self, subject: Subject, services: Services) -> bool:
        """True if there is another factor for which they could stand in."""
        return any(enrolment.factor != self.name for enrolment in services.factors.list_enrolments(subject.user.id))

    def status_text(self, enrolment: Enrolment) -> str:
        """How many are left, and what to do if they are few."""
        left = len(enrolment.value["codes"])
        if left > LOW_CODE_COUNT:
            return ngettext_lazy("{n} code left", "{n} codes left", left)
        if not left:
            return gettext_lazy("No code is left. Make new ones.")
        return ngettext_lazy("Only {n} code left. Make new ones.", "Only {n} codes left. Make new ones.", left)


def generate_codes() -> tuple[str, ...]:
    """Ten new ones, as they are shown: ``7KQ2-9FTX-3MNA``. No two begin alike."""
    found: dict[str, str] = {}
    while len(found) < CODE_COUNT:
        code = "".join(secrets.choice(_ALPHABET) for _ in range(_CODE_LENGTH))
        found.setdefault(code[:_PREFIX_LENGTH], code)
    return tuple(
        "-".join(code[at : at + _GROUP_SIZE] for at in range(0, _CODE_LENGTH, _GROUP_SIZE)) for code in found.values()
    )


def normalize_code(code: str) -> str:
    """The code as it is hashed, however it was typed: with or without dashes and spaces, in any case."""
    return "".join(item for item in code.upper() if item not in "-‐–—" and not item.isspace()).translate(_CONFUSABLES)


def code_prefix(code: str) -> str:
    """By which the code is kept."""
    return normalize_code(code)[:_PREFIX_LENGTH]


def remove_code(value: Mapping[str, Any], code: str) -> dict[str, Any]:
    """What is left once the code is used."""
    index = code_prefix(code)
    return {**value, "codes": {item: kept for item, kept in value["codes"].items() if item != index}}
