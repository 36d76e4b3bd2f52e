"""Contract of every list."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from identity.domain.federated_credentials import FederatedCredential
from identity.domain.permissions import ManagerLevel, ResourceKey
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.service_user_keys import ServiceUserKey
from identity.storage.backend import Storage
from identity.storage.contract import factories as make
from identity.storage.contract.entities import make_grantee, make_group
from identity.storage.contract.factories import NOW, SECOND, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness, remove
from identity.storage.contract.page_checks import (
    check_active,
    check_insertion,
    check_order,
    check_query,
    check_removal,
    check_sorts,
    check_ties,
    check_totals,
)
from identity.storage.paging import PageRequest, ResultPage, SortKeys
from identity.storage.stores import applications, groups, organizations, projects
from identity.storage.stores.users import UserKind

NAMES = ("alpha", "Same", "same", "SAME", "zeta")
USER_NAMES = ("alpha", "Beta", "delta", "Gamma", "omega")
UNICODE_NAMES = ("Ωmega", "çelik", "株式会社", "straße", "strasse2", "😀", "a_b", "a%b", "'", '"')


@dataclass(frozen=True)
class ListCase:
    """A list: its owner, its pages, how to make a row of it, and rows of other lists. Sorted by the field ``name``, or
    newest first without one."""

    owner: Callable[[StorageHarness], Any]
    page: Callable[[Storage, Any, PageRequest], ResultPage[Any]]
    make: Callable[..., Any]
    foreign_rows: Callable[[StorageHarness, Any], list[Any]]
    name: str = ""
    names: tuple[str, ...] = NAMES
    orders: SortKeys[Any] | None = None
    has_state: bool = True


@dataclass(frozen=True)
class ListUnderTest:
    """A list in one test, with its owner."""

    on: StorageHarness
    case: ListCase
    owner: Any

    def page(self, request: PageRequest) -> ResultPage[Any]:
        """One page, read in a session of its own."""
        with self.on.read_session() as storage:
            return self.case.page(storage, self.owner, request)

    def make(self, **fields: Any) -> Any:
        return self.case.make(self.on, self.owner, **fields)

    def rows(self, count: int) -> list[Any]:
        """Return ``count`` rows in list order, not stored."""
        if self.case.name:
            return [self.make(**{self.case.name: f"name-{chr(97 + number)}"}) for number in range(count)]
        return [self.make(created_at=NOW - number * SECOND) for number in range(count)]

    def remove(self, row: Any) -> None:
        with self.on.transaction() as storage:
            remove(storage, row)


LISTS = {
    "organizations": ListCase(
        lambda on: None,
        lambda storage, owner, request: storage.organizations.page(request),
        lambda on, owner, **fields: make.organization(**fields),
        lambda on, owner: [],
        name="name",
        orders=organizations.ORGANIZATION_SORT_KEYS,
    ),
    "projects": ListCase(
        lambda on: on.organization,
        lambda storage, owner, request: storage.projects.page(owner.id, request),
        lambda on, owner, **fields: make.project(owner, **fields),
        lambda on, owner: [make.project(on.other_organization)],
        name="name",
        orders=projects.PROJECT_SORT_KEYS,
    ),
    "applications": ListCase(
        lambda on: on.project,
        lambda storage, owner, request: storage.applications.page(owner.id, request),
        lambda on, owner, **fields: make.application(owner, **fields),
        lambda on, owner: [make.application(on.store_value(make.project(on.organization)))],
        name="name",
        orders=applications.APPLICATION_SORT_KEYS,
    ),
    "people": ListCase(
        lambda on: on.organization,
        lambda storage, owner, request: storage.users.page(owner.id, UserKind.HUMAN, request),
        lambda on, owner, **fields: make.human_user(owner, **fields),
        lambda on, owner: [make.human_user(on.other_organization), make.service_user(owner)],
        name="user_name",
        names=USER_NAMES,
    ),
    "service users": ListCase(
        lambda on: on.organization,
        lambda storage, owner, request: storage.users.page(owner.id, UserKind.SERVICE, request),
        lambda on, owner, **fields: make.service_user(owner, **fields),
        lambda on, owner: [make.service_user(on.other_organization), make.human_user(owner)],
        name="user_name",
        names=USER_NAMES,
    ),
    "project grants": ListCase(
        lambda on: on.project,
        lambda storage, owner, request: storage.project_grants.page("project_id", owner.id, request),
        lambda on, owner, **fields: make.project_grant(owner, on.store_value(make.organization()), **fields),
        lambda on, owner: [make.project_grant(on.store_value(make.project(on.organization)), on.other_organization)],
    ),
    "project grants held": ListCase(
        lambda on: on.other_organization,
        lambda storage, owner, request: storage.project_grants.page("organization_id", owner.id, request),
        lambda on, owner, **fields: make.project_grant(on.store_value(make.project(on.organization)), owner, **fields),
        lambda on, owner: [make.project_grant(on.project, on.store_value(make.organization()))],
    ),
    "grants of a user": ListCase(
        lambda on: on.human_user,
        lambda storage, owner, request: storage.user_grants.page("user_id", owner.id, request),
        lambda on, owner, **fields: make.user_grant(owner, on.store_value(make.project(on.organization)), **fields),
        lambda on, owner: [make.user_grant(make_grantee(on), on.project)],
    ),
    "grants of a project": ListCase(
        lambda on: on.project,
        lambda storage, owner, request: storage.user_grants.page("project_id", owner.id, request),
        lambda on, owner, **fields: make.user_grant(make_grantee(on), owner, **fields),
        lambda on, owner: [make.user_grant(make_grantee(on), on.store_value(make.project(on.organization)))],
    ),
    "grants of a project grant": ListCase(
        lambda on: on.store_value(make.project_grant(on.project, on.other_organization)),
        lambda storage, owner, request: storage.user_grants.page("project_grant_id", owner.id, request),
        lambda on, owner, **fields: make.user_grant(make_grantee(on), on.project, owner, **fields),
        lambda on, owner: [make.user_grant(make_grantee(on), on.project)],
    ),
    "groups": ListCase(
        lambda on: on.organization,
        lambda storage, owner, request: storage.groups.page(owner.id, request),
        lambda on, owner, **fields: make.group(owner, **fields),
        lambda on, owner: [make.group(on.other_organization)],
        name="name",
        names=USER_NAMES,
        orders=groups.GROUP_SORT_KEYS,
    ),
    "group members": ListCase(
        make_group,
        lambda storage, owner, request: storage.group_members.page(owner.id, request),
        lambda on, owner, **fields: make.group_member(owner, make_grantee(on), **fields),
        lambda on, owner: [make.group_member(make_group(on), on.human_user)],
        has_state=False,
    ),
    "group grants": ListCase(
        make_group,
        lambda storage, owner, request: storage.group_grants.page(owner.id, request),
        lambda on, owner, **fields: make.group_grant(owner, on.store_value(make.project(on.organization)), **fields),
        lambda on, owner: [make.group_grant(make_group(on), on.project)],
        has_state=False,
    ),
    "group managers": ListCase(
        make_group,
        lambda storage, owner, request: storage.group_managers.page(owner.id, request),
        lambda on, owner, **fields: make.group_manager(
            owner,
            ResourceKey(ManagerLevel.PROJECT, on.store_value(make.project(on.organization)).id),
            **fields,
        ),
        lambda on, owner: [make.group_manager(make_group(on))],
        has_state=False,
    ),
    "upstream providers": ListCase(
        lambda on: on.organization,
        lambda storage, owner, request: storage.upstream_providers.page(owner.id, request),
        lambda on, owner, **fields: make.upstream_provider(owner, **fields),
        lambda on, owner: [make.upstream_provider(on.other_organization, everywhere=True)],
    ),
    "webhooks": ListCase(
        lambda on: on.organization,
        lambda storage, owner, request: storage.webhooks.page(owner.id, request),
        lambda on, owner, **fields: make.webhook(owner, **fields),
        lambda on, owner: [make.webhook(on.other_organization), make.webhook()],
    ),
    "managers": ListCase(
        lambda on: ResourceKey(ManagerLevel.ORGANIZATION, on.organization.id),
        lambda storage, owner, request: storage.managers.page(owner, request),
        lambda on, owner, **fields: make.manager(make_grantee(on), owner, **fields),
        lambda on, owner: [
            make.manager(on.human_user),
            make.manager(on.human_user, ResourceKey(ManagerLevel.PROJECT, owner.id)),
            make.manager(on.human_user, ResourceKey(ManagerLevel.ORGANIZATION, make_id())),
        ],
        has_state=False,
    ),
    "keys": ListCase(
        lambda on: on.service_user,
        lambda storage, owner, request: storage.credentials.page(ServiceUserKey, owner.id, request),
        lambda on, owner, **fields: make.service_user_key(owner, **fields),
        lambda on, owner: [make.service_user_key(on.store_value(make.service_user(on.organization)))],
        has_state=False,
    ),
    "federated credentials": ListCase(
        lambda on: on.service_user,
        lambda storage, owner, request: storage.credentials.page(FederatedCredential, owner.id, request),
        lambda on, owner, **fields: make.federated_credential(owner, **fields),
        lambda on, owner: [make.federated_credential(on.store_value(make.service_user(on.organization)))],
        has_state=False,
    ),
    "federated credentials of an application": ListCase(
        lambda on: on.application,
        lambda storage, owner, request: storage.credentials.page(FederatedCredential, owner.id, request),
        lambda on, owner, **fields: make.federated_credential(owner, **fields),
        lambda on, owner: [
            make.federated_credential(on.service_user),
            make.federated_credential(on.store_value(make.application(on.project))),
        ],
        has_state=False,
    ),
    "personal access tokens": ListCase(
        lambda on: on.service_user,
        lambda storage, owner, request: storage.credentials.page(PersonalAccessToken, owner.id, request),
        lambda on, owner, **fields: make.personal_access_token(owner, **fields),
        lambda on, owner: [make.personal_access_token(on.store_value(make.service_user(on.organization)))],
        has_state=False,
    ),
}
SORTABLE_LISTS = [name for name, list_case in LISTS.items() if list_case.orders]
LISTS_WITH_STATE = [name for name, list_case in LISTS.items() if list_case.has_state]


class ListContract(ContractBase):
    """A list contains only its own rows, each once and in one order, despite concurrent insertions and deletions."""

    @pytest.fixture
    def listing(self, on: StorageHarness, request: pytest.FixtureRequest) -> ListUnderTest:
        case = LISTS[request.param]
        return ListUnderTest(on, case, case.owner(on))

    @pytest.mark.parametrize("listing", LISTS, indirect=True)
    def test_lists_show_their_own_rows_alone(self, on: StorageHarness, listing: ListUnderTest) -> None:
        on.store(*listing.case.foreign_rows(on, listing.owner))
        check_order(listing.page, [])
        check_order(listing.page, [on.store_value(listing.make())])

    @pytest.mark.parametrize("listing", LISTS, indirect=True)
    def test_lists_are_in_one_order_also_of_what_is_alike(self, on: StorageHarness, listing: ListUnderTest) -> None:
        rows = [listing.make() for _ in range(5)]
        if listing.case.name:
            rows = [listing.make(**{listing.case.name: name}) for name in UNICODE_NAMES]
        on.store(*rows)
        check_ties(listing.page, rows)

    @pytest.mark.parametrize("listing", LISTS, indirect=True)
    def test_lists_are_by_name_and_id_or_newest_first(self, on: StorageHarness, listing: ListUnderTest) -> None:
        rows = listing.rows(5)
        if listing.case.name:
            first, *twins, last = (listing.make(**{listing.case.name: name}) for name in listing.case.names)
            if listing.case.names is NAMES:
                twins.sort(key=lambda item: item.id)
            rows = [first, *twins, last]
        on.store(*reversed(rows))
        check_order(listing.page, rows)

    @pytest.mark.parametrize("listing", LISTS, indirect=True)
    def test_lists_while_rows_come_and_go(self, on: StorageHarness, listing: ListUnderTest) -> None:
        rows = listing.rows(9)
        on.store(*rows[1::2])
        check_insertion(listing.page, lambda: on.store(*rows[::2]), rows[1::2])
        check_removal(listing.page, listing.remove, rows)

    @pytest.mark.parametrize("listing", LISTS_WITH_STATE, indirect=True)
    def test_lists_by_state(self, on: StorageHarness, listing: ListUnderTest) -> None:
        rows = [listing.make(active=number != 1) for number in range(3)]
        on.store(*rows)
        check_active(listing.page, active=[rows[0], rows[2]], inactive=[rows[1]])

    @pytest.mark.parametrize("listing", SORTABLE_LISTS, indirect=True)
    def test_lists_are_sorted_by_each_of_their_orders(self, on: StorageHarness, listing: ListUnderTest) -> None:
        for name, seconds, active in (("Beta-all", 2, True), ("alpha-all", 3, False), ("gamma-all", 2, True)):
            on.store(listing.make(name=name, created_at=NOW + seconds * SECOND, active=active))
        check_sorts(listing.page, listing.case.orders or {}, "ALL")
        check_totals(listing.page, rows=3, active=2)

    @pytest.mark.parametrize("listing", SORTABLE_LISTS, indirect=True)
    def test_lists_by_any_part_of_the_name(self, on: StorageHarness, listing: ListUnderTest) -> None:
        rocket, straight, percent = (listing.make(name=name) for name in ("Rocket", "Straße", "%"))
        on.store(rocket, straight, percent, *listing.case.foreign_rows(on, listing.owner))
        for query in ("ROCK", "ocket"):
            check_query(listing.page, query, [rocket])
        for query in ("strass", straight.id):
            check_query(listing.page, query, [straight])
        check_query(listing.page, "%", [percent])
        check_query(listing.page, "pocket", [])
