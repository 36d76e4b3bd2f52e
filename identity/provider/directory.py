"""Directory: who else knows people by login name and password, and may bring those whom the service does not know."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from enum import Enum, auto
from typing import Any, ClassVar, Generic, TypeVar

from identity.domain.users import Subject
from identity.services.bundle import Services

Found = TypeVar("Found")


class Concern(Enum):
    """Whether a directory has a say about a login name."""

    #: It does not know such people.
    NONE = auto()
    #: It is asked first; then the password counts that is kept here, if there is one.
    FIRST = auto()
    #: The person is the directory's: nothing else counts.
    ALONE = auto()


class Absent(Exception):
    """The directory does not answer, or not now."""


class Directory(ABC, Generic[Found]):
    """Asked in three steps, of which the middle one takes time and has neither transaction nor services."""

    name: ClassVar[str]

    @abstractmethod
    def concern(self, login_name: str, subject: Subject | None, services: Services) -> Concern:
        """Whether it has a say. ``subject`` is who has the name here; None for nobody, of which nobody must learn."""

    @abstractmethod
    def look(self, login_name: str, password: str) -> Found | None:
        """Who proves to be who with this password; None if it is nobody's. Takes as long for names that nobody has.

        Raises Absent.
        """

    @abstractmethod
    def admit(self, found: Found, subject: Subject | None, services: Services, *, hashed: str) -> Subject | None:
        """Who that is here, with an account made if need be; None if they may not come in, or are not ``subject``.

        ``hashed`` is what a new account keeps in place of a password: nobody knows of what.
        """


def is_of_directory(directories: Iterable[Directory[Any]], subject: Subject, services: Services) -> bool:
    """True for people whose password a directory knows, and not the service."""
    return any(one.concern(subject.login_name, subject, services) is Concern.ALONE for one in directories)
