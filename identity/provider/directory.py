"""Directories: verify passwords of users of one organization, and can provision their accounts."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
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
    """The directory does not respond."""


class Directory(ABC, Generic[EntryT]):
    """The users of one organization. Methods that take an entry or a name may block and run without a transaction or
    services; ``select_directory_query`` decides which of them is called."""

    name: ClassVar[str]

    @abstractmethod
    def serves_organization(self, organization: Organization) -> bool:
        """True if it knows the users of the organization."""

    @abstractmethod
    def linked_entry_id(self, subject: Subject, services: Services) -> str | None:
        """The id of the entry that the account is linked to; None without a link."""

    @abstractmethod
    def linked_user_id(self, found: EntryT, services: Services) -> str | None:
        """The id of the user whose account is linked to the entry; None without a link."""

    @abstractmethod
    def entry_key(self, found: EntryT) -> str:
        """A permanent key of the entry, by which password attempts are counted."""

    @abstractmethod
    def find_entry(self, login_name: LoginName) -> EntryT | None:
        """The only entry with this name. Raises DirectoryUnavailable."""

    @abstractmethod
    def find_entry_by_id(self, link: str) -> EntryT | None:
        """The entry with this id of ``linked_entry_id``, whatever its name is now. Raises DirectoryUnavailable."""

    @abstractmethod
    def verify_password(self, found: EntryT | None, password: str) -> bool:
        """Whether the entry has this password. For None it takes as long, returns False, and sends no password. Raises
        DirectoryUnavailable."""

    @abstractmethod
    def provision_account(
        self, found: EntryT, subject: Subject | None, services: Services, *, hashed: str
    ) -> Subject | None:
        """The account of the entry after the right password; None if it may not sign in or is not ``subject``. Without
        a ``subject`` the entry is not linked: create an account with exactly the typed name, or none. ``hashed`` is
        stored in place of a password: it is the hash of an unknown one."""

    def read_values(self, found: EntryT, names: Collection[str]) -> Mapping[str, list[str]]:
        """The values of these attributes of the entry, for mappings, under the given names; those without values are
        left out. Called after the right password. Raises DirectoryUnavailable."""
        return {}

    def normalize_value(self, name: str, value: str) -> str:
        """A value of the attribute as mappings compare it, such as a distinguished name without needless spaces."""
        return value

    def check_servers(self) -> Iterable[tuple[str, str]]:
        """Log in to each server and search for people, as a sign-in does. Address, and what failed in a sentence made
        with ``gettext_lazy``; empty if all is right. Neither contains a secret. Raises
        DirectoryUnavailable."""
        return ()

    def simulate_query(self, login_name: LoginName) -> None:
        """Take about as long as a query, but not longer if the directory is slow or unavailable."""
        with suppress(DirectoryUnavailable):
            self.find_entry(login_name)
            self.verify_password(None, "")


class DirectoryAccountKind(Enum):
    """What a directory knows about a login name."""

    #: The account is linked to an entry: only the entry's password counts.
    LINKED = auto()
    #: No account has the name.
    UNKNOWN = auto()
    #: The account is local. The response time must not reveal that.
    NONE = auto()


@dataclass(frozen=True, slots=True)
class DirectoryQuery:
    """A query to a directory. Without ``sends_password`` it behaves as if there were no entry."""

    directory: Directory[Any]
    account_kind: DirectoryAccountKind
    sends_password: bool
    #: The organization whose rate limits apply to entries without an account.
    organization: Organization | None = None
    entry_id: str = ""


def select_directory_query(
    directories: Iterable[Directory[Any]], named: ResolvedLogin, services: Services, *, is_rate_limited: bool
) -> DirectoryQuery | None:
    """The query to send, and the directory to send it to. A password is sent to a directory only for an account linked
    to its entry, or for an unknown name whose own domain is that of the directory's organization; the origin of the
    request never suffices. None is sent if the attempt ``is_rate_limited``."""
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
        is_served = home is not None and directory.serves_organization(home)
        if subject is not None:
            if is_served or directory.serves_organization(subject.organization):
                return DirectoryQuery(directory, DirectoryAccountKind.NONE, sends_password=False)
        elif is_served or not login_name.domain:
            # A bare name on the service's own page must not reveal whether a linked account has it.
            may = is_served and home is not None and home.active and login_name.has_own_domain and login_name.is_valid
            return DirectoryQuery(
                directory,
                DirectoryAccountKind.UNKNOWN,
                sends_password=may and not is_rate_limited and not named.is_barred,
                organization=home,
            )
    return None


def is_directory_account(directories: Iterable[Directory[Any]], subject: Subject, services: Services) -> bool:
    """True if a directory, not the service, verifies the user's password."""
    return any(
        directory.serves_organization(subject.organization) and directory.linked_entry_id(subject, services) is not None
        for directory in directories
    )
