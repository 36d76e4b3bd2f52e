"""Factor: a way to prove who one is besides a password, as a plugin offers it."""

from abc import ABC
from typing import ClassVar

from identity.domain.factors import Enrolment
from identity.domain.users import Subject
from identity.services.bundle import Services


class Factor(ABC):
    """A factor by name. Stateless; one object serves all requests.

    What people set up of it is kept by ``services.factors``. Its pages lie below ``/login/{request}``: at its name
    somebody proves it, at ``{name}/new`` they set it up (``config.add_factor_pages``).
    """

    name: ClassVar[str]
    #: What people know it as, and what it is, in a sentence.
    label: ClassVar[str]
    hint: ClassVar[str]
    #: What it proves (RFC 8176).
    methods: ClassVar[tuple[str, ...]]
    #: Names an icon of ``ui.icon``.
    icon: ClassVar[str] = "lock"
    #: True if it can take the place of the password: it proves enough by itself.
    alone: ClassVar[bool] = False
    #: True if a person can set up more than one.
    several: ClassVar[bool] = True
    #: True if it stands in for others and is none by itself: it can be set up once there is another, and having it
    #: alone asks for nothing.
    spare: ClassVar[bool] = False
    #: True if it takes a mail server, and a person who has proved an address.
    needs_mail: ClassVar[bool] = False

    def possible(self, subject: Subject, services: Services) -> bool:
        """True if the person can set it up as things are; the policy is asked elsewhere."""
        return True

    def note(self, enrolment: Enrolment) -> str:
        """What its person should know of what they have set up, such as how much of it is left; empty for nothing."""
        return ""
