"""Signing in elsewhere as one of the ways that policies allow; what was proved there is the provider's to say."""

from typing import ClassVar

from identity.domain.users import Subject
from identity.domain.words import say
from identity.plugins.upstream.sign_out import FACTOR
from identity.provider.factor import Factor
from identity.services.bundle import Services


class Elsewhere(Factor):
    """Nobody sets it up, and by itself it proves nothing more than who somebody is."""

    name: ClassVar[str] = FACTOR
    label: ClassVar[str] = say("Other identity providers")
    hint: ClassVar[str] = say("An account that you have elsewhere.")
    methods: ClassVar[tuple[str, ...]] = ()
    spare: ClassVar[bool] = True

    def possible(self, subject: Subject, services: Services) -> bool:
        """False: accounts are linked by signing in elsewhere."""
        return False
