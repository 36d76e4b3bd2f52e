"""The factor recovery_codes and the format of its codes."""

import secrets
from collections.abc import Mapping
from typing import Any, ClassVar

from identity.api.entities import Subject
from identity.api.pages import gettext_lazy, ngettext_lazy
from identity.api.services import Services
from identity.api.sign_in import Enrolment, Factor

#: How many codes are generated, and when to warn that few are left.
CODE_COUNT, LOW_CODE_COUNT = 10, 3

#: Unambiguous digits and letters (Crockford's Base32): 5 bits each.
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
#: Common misreadings.
_CONFUSABLES = str.maketrans("OIL", "011")
#: The first two letters identify the code, so that one hash is enough to verify it; ten are secret: 50 bits.
_PREFIX_LENGTH, _CODE_LENGTH, _GROUP_SIZE = 2, 12, 4


class RecoveryCodesFactor(Factor):
    """An enrolment stores the hash (argon2id) of each unused code, by its prefix."""

    name: ClassVar[str] = "recovery_codes"
    label: ClassVar[str] = gettext_lazy("Recovery codes")
    hint: ClassVar[str] = gettext_lazy("Ten codes on paper, for when you have lost everything else. Each works once.")
    methods: ClassVar[tuple[str, ...]] = ("otp",)
    icon: ClassVar[str] = "key"
    allows_multiple: ClassVar[bool] = False
    is_backup: ClassVar[bool] = True

    def can_enrol(self, subject: Subject, services: Services) -> bool:
        """True if the user has another factor, which the codes can replace."""
        return any(enrolment.factor != self.name for enrolment in services.factors.list_enrolments(subject.user.id))

    def status_text(self, enrolment: Enrolment) -> str:
        """How many codes are left, with a warning if they are few."""
        left = len(enrolment.value["codes"])
        if left > LOW_CODE_COUNT:
            return ngettext_lazy("{n} code left", "{n} codes left", left)
        if not left:
            return gettext_lazy("No codes are left. Create new ones.")
        return ngettext_lazy("Only {n} code left. Create new ones.", "Only {n} codes left. Create new ones.", left)


def generate_codes() -> tuple[str, ...]:
    """Ten new codes as they are shown: ``7KQ2-9FTX-3MNA``. Their prefixes differ."""
    found: dict[str, str] = {}
    while len(found) < CODE_COUNT:
        code = "".join(secrets.choice(_ALPHABET) for _ in range(_CODE_LENGTH))
        found.setdefault(code[:_PREFIX_LENGTH], code)
    return tuple(
        "-".join(code[at : at + _GROUP_SIZE] for at in range(0, _CODE_LENGTH, _GROUP_SIZE)) for code in found.values()
    )


def normalize_code(code: str) -> str:
    """The code as it is hashed, without dashes and spaces, in upper case."""
    return "".join(item for item in code.upper() if item not in "-‐–—" and not item.isspace()).translate(_CONFUSABLES)


def code_prefix(code: str) -> str:
    """The letters that identify a code."""
    return normalize_code(code)[:_PREFIX_LENGTH]


def remove_code(value: Mapping[str, Any], code: str) -> dict[str, Any]:
    """The enrolment's data without the used code."""
    index = code_prefix(code)
    return {**value, "codes": {item: code_hash for item, code_hash in value["codes"].items() if item != index}}
