"""What is demanded of every list."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from identity.domain.permissions import Level, ResourceKey
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.service_user_keys import ServiceUserKey
from identity.storage.backend import Storage
from identity.storage.contract.base import ContractBase, On, remove
from identity.storage.contract.entities import SECOND, a_grantee
from identity.storage.contract.factories import (
    NOW,
    a_human_user,
    a_key,
    a_manager,
    a_personal_access_token,
    a_project,
    a_project_grant,
    a_service_user,
    a_user_grant,
    an_application,
    an_id,
    an_organization,
    an_upstream_provider,
)
from identity.storage.contract.paging import (
    check_active,
    check_insertion,
    check_order,
    check_removal,
    check_sorts,
    check_ties,
    check_totals,
)
from identity.storage.paging import Orders, Page, PageRequest
from identity.storage.stores import applications, organizations, projects
from identity.storage.stores.users import UserKind

NAMES = ("alpha", "Same", "same", "SAME", "zeta")
USER_NAMES = ("alpha", "Beta", "delta", "Gamma", "omega")
SCRIPTS = ("Ωmega", "çelik", "株式会社", "straße", "strasse2", "😀", "a_b", "a%b", "'", '"')


@dataclass(frozen=True)
class List:
    """One list: whose it is, its pages, how to make a row of it, and rows of other lists.

    It is by name, where ``name`` says by which field, or newest first.
    """

    owner: Callable[[On], Any]
    page: Callable[[Storage, Any, PageRequest], Page[Any]]
    make: Callable[..., Any]
    strangers: Callable[[On, Any], list[Any]]
    name: str = ""
    names: tuple[str, ...] = NAMES
    orders: Orders[Any] | None = None
    has_state: bool = True


@dataclass(frozen=True)
class Listing:
    """A list in one test, with its owner."""

    on: On
    of: List
    owner: Any

    def page(self, request: PageRequest) -> Page[Any]:
        """One page, as a request reads it."""
        with self.on.reading() as storage:
            return self.of.page(storage, self.owner, request)

    def make(self, **fields: Any) -> Any:
        """A new row, not stored."""
        return self.of.make(self.on, self.owner, **fields)

    def rows(self, count: int) -> list[Any]:
        """So many rows in their order, not stored."""
        if self.of.name:
            return [self.make(**{self.of.name: f"name-{chr(97 + number)}"}) for number in range(count)]
        return [self.make(created_at=NOW - number * SECOND) for number in range(count)]

    def remove(self, row: Any) -> None:
        """Remove the row."""
        with self.on.writing() as storage:
            remove(storage, row)


LISTS = {
    "organizations": List(
        lambda on: None,
        lambda storage, owner, request: storage.organizations.page(request),
        lambda on, owner, **fields: an_organization(**fields),
        lambda on, owner: [],
        name="name",
        orders=organizations.ORDERS,
    ),
    "projects": List(
        lambda on: on.organization,
        lambda storage, owner, request: storage.projects.page(owner.id, request),
        lambda on, owner, **fields: a_project(owner, **fields),
        lambda on, owner: [a_project(on.other_organization)],
        name="name",
        orders=projects.ORDERS,
    ),
    "applications": List(
        lambda on: on.project,
        lambda storage, owner, request: storage.applications.page(owner.id, request),
        lambda on, owner, **fields: an_application(owner, **fields),
        lambda on, owner: [an_application(on.saved(a_project(on.organization)))],
        name="name",
        orders=applications.ORDERS,
    ),
    "people": List(
        lambda on: on.organization,
        lambda storage, owner, request: storage.users.page(owner.id, UserKind.HUMAN, request),
        lambda on, owner, **fields: a_human_user(owner, **fields),
        lambda on, owner: [a_human_user(on.other_organization), a_service_user(owner)],
        name="user_name",
        names=USER_NAMES,
    ),
    "service users": List(
        lambda on: on.organization,
        lambda storage, owner, request: storage.users.page(owner.id, UserKind.SERVICE, request),
        lambda on, owner, **fields: a_service_user(owner, **fields),
        lambda on, owner: [a_service_user(on.other_organization), a_human_user(owner)],
        name="user_name",
        names=USER_NAMES,
    ),
    "project grants": List(
        lambda on: on.project,
        lambda storage, owner, request: storage.project_grants.page("project_id", owner.id, request),
        lambda on, owner, **fields: a_project_grant(owner, on.saved(an_organization()), **fields),
        lambda on, owner: [a_project_grant(on.saved(a_project(on.organization)), on.other_organization)],
    ),
    "project grants held": List(
        lambda on: on.other_organization,
        lambda storage, owner, request: storage.project_grants.page("organization_id", owner.id, request),
        lambda on, owner, **fields: a_project_grant(on.saved(a_project(on.organization)), owner, **fields),
        lambda on, owner: [a_project_grant(on.project, on.saved(an_organization()))],
    ),
    "grants of a user": List(
        lambda on: on.human_user,
        lambda storage, owner, request: storage.user_grants.page("user_id", owner.id, request),
        lambda on, owner, **fields: a_user_grant(owner, on.saved(a_project(on.organization)), **fields),
        lambda on, owner: [a_user_grant(a_grantee(on), on.project)],
    ),
    "grants of a project": List(
        lambda on: on.project,
        lambda storage, owner, request: storage.user_grants.page("project_id", owner.id, request),
        lambda on, owner, **fields: a_user_grant(a_grantee(on), owner, **fields),
        lambda on, owner: [a_user_grant(a_grantee(on), on.saved(a_project(on.organization)))],
    ),
    "grants of a project grant": List(
        lambda on: on.saved(a_project_grant(on.project, on.other_organization)),
        lambda storage, owner, request: storage.user_grants.page("project_grant_id", owner.id, request),
        lambda on, owner, **fields: a_user_grant(a_grantee(on), on.project, owner, **fields),
        lambda on, owner: [a_user_grant(a_grantee(on), on.project)],
    ),
    "upstream providers": List(
        lambda on: on.organization,
        lambda storage, owner, request: storage.upstream_providers.page(owner.id, request),
        lambda on, owner, **fields: an_upstream_provider(owner, **fields),
        lambda on, owner: [an_upstream_provider(on.other_organization, everywhere=True)],
    ),
    "managers": List(
        lambda on: ResourceKey(Level.ORGANIZATION, on.organization.id),
        lambda storage, owner, request: storage.managers.page(owner, request),
        lambda on, owner, **fields: a_manager(a_grantee(on), owner, **fields),
        lambda on, owner: [
            a_manager(on.human_user),
            a_manager(on.human_user, ResourceKey(Level.PROJECT, owner.id)),
            a_manager(on.human_user, ResourceKey(Level.ORGANIZATION, an_id())),
        ],
        has_state=False,
    ),
    "keys": List(
        lambda on: on.service_user,
        lambda storage, owner, request: storage.credentials.page(ServiceUserKey, owner.id, request),
        lambda on, owner, **fields: a_key(owner, **fields),
        lambda on, owner: [a_key(on.saved(a_service_user(on.organization)))],
        has_state=False,
    ),
    "personal access tokens": List(
        lambda on: on.service_user,
        lambda storage, owner, request: storage.credentials.page(PersonalAccessToken, owner.id, request),
        lambda on, owner, **fields: a_personal_access_token(owner, **fields),
        lambda on, owner: [a_personal_access_token(on.saved(a_service_user(on.organization)))],
        has_state=False,
    ),
}
WITH_ORDERS = [name for name, one in LISTS.items() if one.orders]
WITH_STATE = [name for name, one in LISTS.items() if one.has_state]


class ListContract(ContractBase):
    """A list shows its own rows alone, each once and in one order, whatever comes and goes meanwhile."""

    @pytest.fixture
    def listing(self, on: On, request: pytest.FixtureRequest) -> Listing:
        """A list."""
        of = LISTS[request.param]
        return Listing(on, of, of.owner(on))

    @pytest.mark.parametrize("listing", LISTS, indirect=True)
    def test_lists_show_their_own_rows_alone(self, on: On, listing: Listing) -> None:
        on.save(*listing.of.strangers(on, listing.owner))
        check_order(listing.page, [])
        check_order(listing.page, [on.saved(listing.make())])

    @pytest.mark.parametrize("listing", LISTS, indirect=True)
    def test_lists_are_in_one_order_also_of_what_is_alike(self, on: On, listing: Listing) -> None:
        rows = [listing.make() for _ in range(5)]
        if listing.of.name:
            rows = [listing.make(**{listing.of.name: name}) for name in SCRIPTS]
        on.save(*rows)
        check_ties(listing.page, rows)

    @pytest.mark.parametrize("listing", LISTS, indirect=True)
    def test_lists_are_by_name_and_id_or_newest_first(self, on: On, listing: Listing) -> None:
        rows = listing.rows(5)
        if listing.of.name:
            first, *twins, last = (listing.make(**{listing.of.name: name}) for name in listing.of.names)
            if listing.of.names is NAMES:
                twins.sort(key=lambda each: each.id)
            rows = [first, *twins, last]
        on.save(*reversed(rows))
        check_order(listing.page, rows)

    @pytest.mark.parametrize("listing", LISTS, indirect=True)
    def test_lists_while_rows_come_and_go(self, on: On, listing: Listing) -> None:
        rows = listing.rows(9)
        on.save(*rows[1::2])
        check_insertion(listing.page, lambda: on.save(*rows[::2]), rows[1::2])
        check_removal(listing.page, listing.remove, rows)

    @pytest.mark.parametrize("listing", WITH_STATE, indirect=True)
    def test_lists_by_state(self, on: On, listing: Listing) -> None:
        rows = [listing.make(active=number != 1) for number in range(3)]
        on.save(*rows)
        check_active(listing.page, active=[rows[0], rows[2]], inactive=[rows[1]])

    @pytest.mark.parametrize("listing", WITH_ORDERS, indirect=True)
    def test_lists_are_sorted_by_each_of_their_orders(self, on: On, listing: Listing) -> None:
        for name, seconds, active in (("Beta-all", 2, True), ("alpha-all", 3, False), ("gamma-all", 2, True)):
            on.save(listing.make(name=name, created_at=NOW + seconds * SECOND, active=active))
        check_sorts(listing.page, listing.of.orders or {}, "ALL")
        check_totals(listing.page, rows=3, active=2)
