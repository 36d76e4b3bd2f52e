"""Users: people and service users."""

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from enum import StrEnum

from identity.domain.names import name_key
from identity.domain.users import Agent, HumanUser, PasswordHash, Subject, User
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage, SortKeys, sortable_timestamp
from identity.storage.stores.entity_store import EntityStore

#: Maximum number of people found by one email address.
MAX_USERS_PER_EMAIL = 10


class UserKind(StrEnum):
    """Kinds of users. A list of service users includes agents, unless it is limited to others."""

    HUMAN = "human"
    SERVICE = "service"
    AGENT = "agent"

    @classmethod
    def from_user(cls, user: User) -> "UserKind":
        if isinstance(user, Agent):
            return cls.AGENT
        return cls.HUMAN if isinstance(user, HumanUser) else cls.SERVICE


#: Sort keys of the list, the default first. Users without an address or a sign-in come first.
USER_SORT_KEYS: SortKeys[User] = {
    "user_name": lambda user: name_key(user.user_name),
    "display_name": lambda user: name_key(user.display_name),
    "email": lambda user: name_key(user.profile.email) if isinstance(user, HumanUser) else "",
    "created_at": lambda user: sortable_timestamp(user.created_at),
    "last_sign_in_at": lambda user: sortable_timestamp(user.last_sign_in_at) if isinstance(user, HumanUser) else "",
}

#: Sort keys of a list of service users.
SERVICE_USER_SORT_KEYS = ("user_name", "display_name", "created_at")


class UserStore(EntityStore[User]):
    """Unique: the user name in its organization over both kinds, compared by name_key (DuplicateValue("user_name")).
    ``update`` takes a value of the same kind and keeps the stored ``last_sign_in_at``. A person has at most one
    password."""

    @abstractmethod
    def add_many(self, users: Sequence[User]) -> None:
        """Store new users, all or none: the transaction can continue after an error."""

    @abstractmethod
    def find_subject(self, user_id: str) -> Subject | None:
        """The user with its organization, in one query."""

    @abstractmethod
    def find_subjects(self, ids: Collection[str]) -> Mapping[str, Subject]:
        """The users with these ids and their organizations, by id and in one query; unknown ids are left out."""

    @abstractmethod
    def find_by_name(self, organization_id: str, user_name: str) -> User | None:
        """The organization's user with this name; compared by name_key."""

    @abstractmethod
    def find_by_login_name(self, login_name: str) -> Subject | None:
        """The user named ``user_name@primary-domain``; compared by name_key."""

    @abstractmethod
    def find_by_user_name_alone(self, user_name: str, *, preferred_organization_id: str) -> Subject | None:
        """The person of this name in ``preferred_organization_id`` if a manager created it, else the one who has had it
        for longest among all with a ``named_at``; compared by name_key."""

    @abstractmethod
    def find_by_email(self, organization_id: str, email: str) -> tuple[Subject, ...]:
        """The organization's people with this email address, compared by ``email_key``; oldest first, at most 10. Empty
        for a text that is not an address."""

    @abstractmethod
    def find_by_verified_email(
        self,
        key: str,
        *,
        organization_id: str | None = None,
        is_proven: bool = False,
        active: bool = False,
        limit: int = MAX_USERS_PER_EMAIL,
    ) -> tuple[Subject, ...]:
        """The people whose verified address has this ``email_key``, oldest first; of all organizations, or of one.
        ``is_proven`` limits them to addresses from GLOBALLY_TRUSTED_VERIFIERS, ``active`` to those who can sign in:
        neither they nor their organization is deactivated."""

    @abstractmethod
    def has_email_used_as_login_name(self, organization_id: str, domain: str) -> bool:
        """True if a verified address of this domain in the organization has a local part that is another user's name
        there; compared by name_key."""

    @abstractmethod
    def list_email_keys_verified_in_other_organizations(
        self, organization_id: str, domain: str, limit: int
    ) -> tuple[str, ...]:
        """Up to ``limit`` ``email_key`` values of addresses of the domain that active people of other organizations
        have, from GLOBALLY_TRUSTED_VERIFIERS, in order. Scans all verified ones."""

    @abstractmethod
    def update_last_sign_in(self, user_id: str, signed_in_at: datetime) -> None:
        """Move a person's ``last_sign_in_at`` forward, never back; the version stays. An unknown user is ignored."""

    @abstractmethod
    def page(
        self,
        organization_id: str | None,
        kind: UserKind | None,
        request: PageRequest = FIRST_PAGE,
        *,
        with_agents: bool = True,
    ) -> ResultPage[User]:
        """The organization's users of one kind, by user name by default. None: of all organizations, of both kinds.
        Service users include agents unless ``with_agents`` is False."""

    @abstractmethod
    def list_with_other_algorithms(self, algorithms: Collection[str], limit: int) -> tuple[User, ...]:
        """Active service users that chose a signing algorithm other than these, oldest id first, in one query."""

    @abstractmethod
    def list_due_deletions(self, now: datetime, limit: int) -> tuple[str, ...]:
        """Ids of up to ``limit`` people whose ``deletion_at`` has come, the longest due first."""

    @abstractmethod
    def list_agents(self, owner_user_id: str) -> tuple[Agent, ...]:
        """The agents of this person, oldest first."""

    @abstractmethod
    def stop_agents(self, owner_user_id: str, stopped_at: datetime) -> int:
        """Stop all agents of this person that are not stopped, each with a new version, by one statement; returns their
        number."""

    @abstractmethod
    def find_password(self, user_id: str) -> PasswordHash | None:
        """The user's password hash; None without a password."""

    @abstractmethod
    def set_password(self, password: PasswordHash) -> None:
        """Store or replace the user's password hash. Raises RowNotFound if there is no such user."""

    @abstractmethod
    def lock_password_hash(self, user_id: str, hash: str) -> bool:
        """True if this is the user's hash, by one conditional write: it cannot be replaced until the transaction
        ends."""

    @abstractmethod
    def list_must_change_password(self, user_ids: Collection[str]) -> Mapping[str, bool]:
        """Which of these users must change their password, in one query; users without a password are left out."""
