"""Factor: a way to prove who one is besides a password, as a plugin offers it."""

from abc import ABC
from typing import ClassVar

from identity.domain.enrolments import Enrolment
from identity.domain.users import Subject
from identity.services.container import Services


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
    is_passwordless: ClassVar[bool] = False
    #: True if a person can set up more than one.
    allows_multiple: ClassVar[bool] = True
    #: True if it stands in for others and is none by itself: it can be set up once there is another, and having it
    #: alone asks for nothing.
    is_backup: ClassVar[bool] = False
    #: True if it takes a mail server, and a person who has proved an address.
    needs_mail: ClassVar[bool] = False

    def can_enrol(self, subject: Subject, services: Services) -> bool:
        """True if the person can set it up as things are; the policy is asked elsewhere."""
        return True

    def status_text(self, enrolment: Enrolment) -> str:
        """What its person should know of what they have set up, such as how much of it is left; empty for nothing."""
        return ""
