"""The factor recovery_codes, and what its codes are."""

import secrets
from collections.abc import Mapping
from typing import Any, ClassVar

from identity.domain.factors import Enrolment
from identity.domain.users import Subject
from identity.domain.words import say, say_many
from identity.provider.factor import Factor
from identity.services.bundle import Services

#: How many there are, and how many are few.
HOW_MANY, FEW = 10, 3

#: Digits and letters of which none looks like another (Crockford's Base32): 5 bits each.
_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
#: What people read or type instead.
_MISREAD = str.maketrans("OIL", "011")
#: The first two letters tell which code it is, so that one hash is enough to verify it; ten are secret: 50 bits.
_TOLD, _LENGTH, _GROUP = 2, 12, 4


class RecoveryCodes(Factor):
    """What is kept: of each code that is left the hash (argon2id), by its first letters."""

    name: ClassVar[str] = "recovery_codes"
    label: ClassVar[str] = say("Recovery codes")
    hint: ClassVar[str] = say("Ten codes on paper, for when you have lost everything else. Each works once.")
    methods: ClassVar[tuple[str, ...]] = ("otp",)
    icon: ClassVar[str] = "key"
    several: ClassVar[bool] = False
    spare: ClassVar[bool] = True

    def possible(self, subject: Subject, services: Services) -> bool:
        """True if there is another factor for which they could stand in."""
        return any(one.factor != self.name for one in services.factors.of(subject.user.id))

    def note(self, enrolment: Enrolment) -> str:
        """How many are left, and what to do if they are few."""
        left = len(enrolment.value["codes"])
        if left > FEW:
            return say_many("{n} code left", "{n} codes left", left)
        if not left:
            return say("No code is left. Make new ones.")
        return say_many("Only {n} code left. Make new ones.", "Only {n} codes left. Make new ones.", left)


def new_codes() -> tuple[str, ...]:
    """Ten new ones, as they are shown: ``7KQ2-9FTX-3MNA``. No two begin alike."""
    found: dict[str, str] = {}
    while len(found) < HOW_MANY:
        code = "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))
        found.setdefault(code[:_TOLD], code)
    return tuple("-".join(code[at : at + _GROUP] for at in range(0, _LENGTH, _GROUP)) for code in found.values())


def normal(code: str) -> str:
    """The code as it is hashed, however it was typed: with or without dashes and spaces, in any case."""
    return "".join(one for one in code.upper() if one not in "-‐–—" and not one.isspace()).translate(_MISREAD)


def index_of(code: str) -> str:
    """By which the code is kept."""
    return normal(code)[:_TOLD]


def without(value: Mapping[str, Any], code: str) -> dict[str, Any]:
    """What is left once the code is used."""
    index = index_of(code)
    return {**value, "codes": {one: kept for one, kept in value["codes"].items() if one != index}}
