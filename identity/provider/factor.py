"""Factor: a way to authenticate besides a password, as a plugin offers it."""

from abc import ABC
from typing import ClassVar

from identity.domain.enrolments import Enrolment
from identity.domain.users import Subject
from identity.services.container import Services


class Factor(ABC):
    """A factor by name. Stateless; one object serves all requests. ``services.factors`` stores the enrolments. Its
    pages are below ``/login/{request}``: users prove it at its name and enrol it at ``{name}/new``
    (``config.add_factor_pages``)."""

    name: ClassVar[str]
    #: Its label for users, and its description in one sentence.
    label: ClassVar[str]
    hint: ClassVar[str]
    #: The methods that it proves (RFC 8176).
    methods: ClassVar[tuple[str, ...]]
    #: Names an icon of ``ui.icon``.
    icon: ClassVar[str] = "lock"
    #: True if it can replace the password because it is sufficient alone.
    is_passwordless: ClassVar[bool] = False
    #: True if a user can enrol more than one.
    allows_multiple: ClassVar[bool] = True
    #: True for a backup of other factors: it can be enrolled only beside another one, and is not required by itself.
    is_backup: ClassVar[bool] = False
    #: True if it needs a mail server and a user with a proved address.
    needs_mail: ClassVar[bool] = False

    def can_enrol(self, subject: Subject, services: Services) -> bool:
        """True if the user can enrol it now; the policy is checked separately."""
        return True

    def is_optional(self, enrolment: Enrolment) -> bool:
        """True for an enrolment that was made without the user's asking: a sign-in with a password does not require it
        unless the policy or the client requires a second factor."""
        return False

    def status_text(self, enrolment: Enrolment) -> str:
        """What users should know of their enrolment, such as how many codes are left; empty for nothing."""
        return ""
