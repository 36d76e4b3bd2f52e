"""Groups, their members and their roles."""

from abc import abstractmethod
from collections.abc import Collection, Mapping
from datetime import datetime

from identity.domain.group_mappings import GroupMapping
from identity.domain.groups import Group, GroupGrant, GroupManager, GroupMember
from identity.domain.names import name_key
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage, SortKeys, sortable_timestamp
from identity.storage.stores.entity_store import EntityStore

GROUP_SORT_KEYS: SortKeys[Group] = {
    "name": lambda group: name_key(group.name),
    "created_at": lambda group: sortable_timestamp(group.created_at),
}


class GroupStore(EntityStore[Group]):
    """Names are unique in an organization, regardless of case (DuplicateValue("name"))."""

    @abstractmethod
    def page(self, organization_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[Group]:
        """The organization's groups, usually by name."""

    @abstractmethod
    def count_members(self, ids: Collection[str]) -> Mapping[str, int]:
        """The number of members of each of these groups, also of those that have ended; groups without are left
        out."""

    @abstractmethod
    def list_of_user(self, user_id: str) -> tuple[tuple[Group, GroupMember], ...]:
        """The user's memberships with their groups, also those that have ended, in one query and by the group's
        name."""


class GroupMemberStore(EntityStore[GroupMember]):
    """Unique: one membership per group and user (DuplicateValue("user_id"))."""

    @abstractmethod
    def page(self, group_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[GroupMember]:
        """The group's members, newest first; a search matches the users."""

    @abstractmethod
    def list_ending(
        self, after: datetime | None, until: datetime, limit: int, *, organization_id: str | None = None
    ) -> tuple[GroupMember, ...]:
        """The memberships that end at ``until`` at the latest and after ``after``, soonest first. With an organization,
        those in its groups."""


class GroupGrantStore(EntityStore[GroupGrant]):
    """Unique: one grant per group and project (DuplicateValue("project_id"))."""

    @abstractmethod
    def page(self, group_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[GroupGrant]:
        """The group's project roles, newest first; a search matches the projects."""

    @abstractmethod
    def list_ending(
        self, after: datetime | None, until: datetime, limit: int, *, organization_id: str | None = None
    ) -> tuple[GroupGrant, ...]:
        """The grants that end at ``until`` at the latest and after ``after``, soonest first. With an organization,
        those of its groups."""


class GroupManagerStore(EntityStore[GroupManager]):
    """Unique: one row per group and resource (DuplicateValue("resource_id"))."""

    @abstractmethod
    def page(self, group_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[GroupManager]:
        """The group's manager roles, newest first."""

    @abstractmethod
    def list_ending(
        self, after: datetime | None, until: datetime, limit: int, *, organization_id: str | None = None
    ) -> tuple[GroupManager, ...]:
        """The rows whose roles end at ``until`` at the latest and after ``after``, soonest first. With an organization,
        those of its groups."""


class GroupMappingStore(EntityStore[GroupMapping]):
    """Lists are oldest first."""

    @abstractmethod
    def list_of_provider(self, provider_id: str) -> tuple[GroupMapping, ...]:
        """The mappings of the identity provider."""

    @abstractmethod
    def list_of_directory(self, organization_id: str, name: str) -> tuple[GroupMapping, ...]:
        """The mappings of the directory in this organization."""

    @abstractmethod
    def list_of_group(self, group_id: str) -> tuple[GroupMapping, ...]:
        """The mappings that fill the group."""

    @abstractmethod
    def count_members(self, ids: Collection[str]) -> Mapping[str, int]:
        """The number of members that each of these mappings added; mappings without are left out."""
