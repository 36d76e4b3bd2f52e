"""Directory: who else knows people by login name and password, and may bring those whom the service does not know."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, ClassVar, Generic, TypeVar

from identity.domain.login_names import LoginName
from identity.domain.organizations import Organization
from identity.domain.users import Subject
from identity.services.container import Services
from identity.services.login_names import ResolvedLogin

EntryT = TypeVar("EntryT")


class DirectoryUnavailable(Exception):
    """The directory does not answer, or not now."""


class Directory(ABC, Generic[EntryT]):
    """Knows the people of one organization. What is given an ``LdapEntry`` or a name takes time, and has neither
    transaction nor services; ``ask`` decides which of it is called."""

    name: ClassVar[str]

    @abstractmethod
    def serves_organization(self, organization: Organization) -> bool:
        """True for the organization whose people it knows."""

    @abstractmethod
    def linked_entry_id(self, subject: Subject, services: Services) -> str | None:
        """What names the entry of an account that is linked to one; None for an account that is not."""

    @abstractmethod
    def linked_user_id(self, found: EntryT, services: Services) -> str | None:
        """The id of the user whose account is linked to the entry; None for nobody's."""

    @abstractmethod
    def entry_key(self, found: EntryT) -> str:
        """What names the entry for ever. Attempts at an entry are counted by it."""

    @abstractmethod
    def find_entry(self, login_name: LoginName) -> EntryT | None:
        """The one entry of this name. Raises DirectoryUnavailable."""

    @abstractmethod
    def find_entry_by_id(self, link: str) -> EntryT | None:
        """The entry that ``linked_entry_id`` named, whatever it is called by now. Raises DirectoryUnavailable."""

    @abstractmethod
    def verify_password(self, found: EntryT | None, password: str) -> bool:
        """Whether the password is the entry's. For None it takes as long, is False, and no password leaves the service.

        Raises DirectoryUnavailable.
        """

    @abstractmethod
    def provision_account(
        self, found: EntryT, subject: Subject | None, services: Services, *, hashed: str
    ) -> Subject | None:
        """Who that is here, once the password was right; None if they may not come in, or are not ``subject``.

        Without a ``subject`` it is an entry that nobody's account is linked to: a new account is made, called exactly
        as was typed, or none. ``hashed`` is what it keeps in place of a password: nobody knows of what.
        """

    def simulate_query(self, login_name: LoginName) -> None:
        """Take about as long as a question does, and no longer than that if the directory is slow or away."""
        with suppress(DirectoryUnavailable):
            self.find_entry(login_name)
            self.verify_password(None, "")


class DirectoryAccountKind(Enum):
    """What a directory has to do with a login name."""

    #: The account is linked to an entry: its password is the entry's, and nothing else counts.
    LINKED = auto()
    #: Nobody here has the name.
    UNKNOWN = auto()
    #: The account is kept here alone. Nobody shall see that by the clock.
    NONE = auto()


@dataclass(frozen=True, slots=True)
class DirectoryQuery:
    """What a directory is asked. Without ``sends_password`` all happens as if the entry were not there."""

    directory: Directory[Any]
    account_kind: DirectoryAccountKind
    sends_password: bool
    #: The organization by whose rules attempts at an entry that nobody is linked to are counted.
    organization: Organization | None = None
    entry_id: str = ""


def select_directory_query(
    directories: Iterable[Directory[Any]], named: ResolvedLogin, services: Services, *, is_rate_limited: bool
) -> DirectoryQuery | None:
    """What is asked of which directory, where anybody is.

    A password goes to a directory for an account that is linked to its entry, or for a name that nobody has and whose
    own domain is that of the directory's organization: where the request comes from never suffices. It goes to none
    where the attempt is ``is_rate_limited``.
    """
    login_name, subject = named.login_name, named.subject
    home = services.domains.find_organization(login_name.domain) if login_name.domain else None
    for directory in directories:
        if subject is not None and directory.serves_organization(subject.organization):
            link = directory.linked_entry_id(subject, services)
            if link is not None:
                return DirectoryQuery(
                    directory,
                    DirectoryAccountKind.LINKED,
                    sends_password=not is_rate_limited and not named.is_barred,
                    entry_id=link,
                )
    for directory in directories:
        there = home is not None and directory.serves_organization(home)
        if subject is not None:
            if there or directory.serves_organization(subject.organization):
                return DirectoryQuery(directory, DirectoryAccountKind.NONE, sends_password=False)
        elif there or not login_name.domain:
            # Of a bare name at the service's own page nobody shall see whether a linked account has it.
            may = there and home is not None and home.active and login_name.has_own_domain and login_name.is_valid
            return DirectoryQuery(
                directory,
                DirectoryAccountKind.UNKNOWN,
                sends_password=may and not is_rate_limited and not named.is_barred,
                organization=home,
            )
    return None


def is_directory_account(directories: Iterable[Directory[Any]], subject: Subject, services: Services) -> bool:
    """True for people whose password a directory knows, and not the service."""
    return any(
        directory.serves_organization(subject.organization) and directory.linked_entry_id(subject, services) is not None
        for directory in directories
    )
