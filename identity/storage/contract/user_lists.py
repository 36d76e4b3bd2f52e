"""Contract of user lists, besides that of all lists."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from identity.domain.users import HumanUser, Profile, User
from identity.storage.contract.factories import NOW, make_human_user, make_service_user
from identity.storage.contract.harness import ContractBase, StorageHarness
from identity.storage.contract.page_checks import (
    Fetch,
    check_active,
    check_order,
    check_query,
    check_sorts,
    check_totals,
)
from identity.storage.paging import MAX_COUNTED_ROWS, PageRequest, RowTotal, SortOrder
from identity.storage.stores.users import USER_SORT_KEYS, UserKind


class UserListContract(ContractBase):
    """Users are found by any part of their names and address, and listed by kind, by organization or all."""

    @pytest.fixture
    def people(self, on: StorageHarness) -> Fetch[User]:
        return partial(on.read.users.page, on.organization.id, UserKind.HUMAN)

    @pytest.fixture
    def service_users(self, on: StorageHarness) -> Fetch[User]:
        return partial(on.read.users.page, on.organization.id, UserKind.SERVICE)

    def test_users_many_are_added_as_one_by_one(
        self, on: StorageHarness, people: Fetch[User], service_users: Fetch[User]
    ) -> None:
        added = [make_human_user(on.organization, user_name=f"p{number}") for number in range(7)]
        robot = make_service_user(on.organization)
        with on.transaction() as storage:
            storage.users.add_many([*added, robot])
            storage.users.add_many([])
        assert list(people(PageRequest())) == added
        assert list(service_users(PageRequest())) == [robot]

    @pytest.mark.parametrize(
        ("query", "user_names"),
        [
            ("KAR", {"karl"}),
            ("Grace H", {"gh"}),
            ("hopper", {"gh"}),
            ("opp", {"gh"}),
            ("hopper  gRACE", {"gh"}),
            ("hopper karl", set()),
            ("raceho", set()),
            ("lovelace", {"countess"}),
            ("strass", {"zoe"}),
            ("SSE", {"zoe"}),
            ("emilie", {"zoe"}),
            ("Émilie", {"zoe"}),
            ("mia@ACME", {"gh"}),
            ("acme.exam", {"gh"}),
            ("karl@", {"karl"}),
            ("karl@acm", {"karl"}),
            ("karl@acme.test", {"karl"}),
            ("arl@acme.test", {"karl"}),
            ("karl@bolt.test", set()),
            ("percent%@acme.test", {"percent%"}),
            ("%", {"percent%"}),
            ("_", {"_under"}),
            ("/", set()),
            ("\\", set()),
        ],
    )
    def test_users_page_of_people_by_any_part_of_what_is_known_of_them(
        self, on: StorageHarness, people: Fetch[User], query: str, user_names: set[str]
    ) -> None:
        organization = on.organization

        def person(user_name: str, **profile: str) -> HumanUser:
            return make_human_user(organization, user_name=user_name, profile=Profile(**profile))  # type: ignore[arg-type]

        rows = [
            person("karl", given_name="Count"),
            person("gh", given_name="Grace", family_name="Hopper", email="Mia@Acme.Example"),
            person("countess", display_name="The Countess", given_name="Ada", family_name="Lovelace"),
            person("zoe", display_name="Straße", given_name="E\u0301milie"),
            person("percent%"),
            person("_under"),
        ]
        named = replace(organization, primary_domain="acme.test", version=2)
        on.write.organizations.update(named)
        on.store(
            *rows,
            make_human_user(on.other_organization, user_name="karl"),
            make_service_user(organization, user_name="kar"),
        )
        check_query(people, query, [row for row in rows if row.user_name in user_names])

    def test_users_page_of_service_users_by_any_part_of_what_is_known_of_them(
        self, on: StorageHarness, service_users: Fetch[User]
    ) -> None:
        robot = make_service_user(on.organization, user_name="fetcher", display_name="Größe Messer")
        service_user = make_service_user(on.organization, user_name="worker", display_name="Worker")
        on.store(robot, service_user)
        check_query(service_users, "FETCH", [robot])
        check_query(service_users, "GRÖSSE", [robot])
        check_query(service_users, "messer grosse", [robot])
        check_query(service_users, "etcher", [robot])
        check_query(service_users, robot.id[:7], [])
        check_query(service_users, robot.id[9:], [])
        check_query(service_users, robot.id.upper(), [robot])
        check_query(service_users, robot.id[:13], [robot])
        check_query(service_users, service_user.id, [service_user])

    def test_users_page_sorted_by_each_of_its_orders(self, on: StorageHarness, people: Fetch[User]) -> None:
        moments = [NOW + timedelta(seconds=seconds) for seconds in (3, 1, 2, 2)]
        rows = [
            make_human_user(
                on.organization,
                user_name=f"{name}-of-all",
                profile=Profile(display_name=display_name, email=email),
                created_at=created_at,
                last_sign_in_at=signed_in_at,
            )
            for name, display_name, email, created_at, signed_in_at in (
                ("Dora", "anna", "Zoe@acme.example", moments[0], None),
                ("bob", "Émile", "", moments[1], moments[0]),
                ("carl", "zeno", "a@acme.example", moments[2], moments[2]),
                ("ann", "Anna", "", moments[3], None),
            )
        ]
        on.store(*rows)
        check_sorts(people, USER_SORT_KEYS, "of-all")
        check_totals(people, rows=4, active=4)

    def test_users_page_finds_and_counts_what_is_found_often(self, on: StorageHarness, people: Fetch[User]) -> None:
        on.store(
            *(make_human_user(on.organization, user_name=f"crowd{number:04}") for number in range(MAX_COUNTED_ROWS + 1))
        )
        for query, total in (
            ("crowd", RowTotal(MAX_COUNTED_ROWS, is_exact=False)),
            ("crowd0", RowTotal(MAX_COUNTED_ROWS)),
        ):
            page = people(
                PageRequest(limit=2, query=query, sort=SortOrder("user_name", descending=True), with_total=True)
            )
            assert page.total == total
            assert page.items[0].user_name == ("crowd1000" if query == "crowd" else "crowd0999")
        assert people(PageRequest(limit=2, with_total=True)).total == RowTotal(MAX_COUNTED_ROWS, is_exact=False)
        assert [user.user_name for user in people(PageRequest(query="crowd0500"))] == ["crowd0500"]

    def test_users_page_finds_what_was_changed(self, on: StorageHarness, people: Fetch[User]) -> None:
        profile = Profile(given_name="Grace", family_name="Hopper")
        changed = replace(on.human_user, user_name="gh", profile=profile, version=2)
        on.write.users.update(changed)
        check_query(people, on.human_user.user_name, [])
        check_query(people, "hopper", [changed])

    def test_users_page_of_both_kinds_and_all_organizations(self, on: StorageHarness) -> None:
        own_users: list[User] = [
            make_human_user(on.organization, user_name="Ada"),
            make_service_user(on.organization, user_name="bob", active=False),
            make_human_user(on.organization, user_name="dora"),
        ]
        foreign: list[User] = [
            make_service_user(on.other_organization, user_name="Carl"),
            make_human_user(on.other_organization, user_name="eve", active=False),
        ]
        on.store(*reversed(own_users), *reversed(foreign))
        everyone: list[User] = sorted([*own_users, *foreign], key=lambda user: user.user_name.lower())

        def users(organization_id: str | None, kind: UserKind | None) -> Fetch[User]:
            return partial(on.read.users.page, organization_id, kind)

        check_order(users(on.organization.id, None), own_users)
        check_order(users(on.other_organization.id, None), foreign)
        check_order(users(None, None), everyone)
        check_order(users(None, UserKind.HUMAN), [own_users[0], own_users[2], foreign[1]])
        check_order(users(None, UserKind.SERVICE), [own_users[1], foreign[0]])
        check_order(users("", None), [])
        check_active(
            users(None, None), active=[own_users[0], foreign[0], own_users[2]], inactive=[own_users[1], foreign[1]]
        )

    def test_users_page_by_query_without_letters_of_one_language(self, on: StorageHarness) -> None:
        names = ("Michał Wałęsa", "Søren Ærø", "Đorđe", "Þór Ðóra", "Işıl", "Œuvre")
        people = [
            make_human_user(on.organization, user_name=f"person-{index}", profile=Profile(display_name=name))
            for index, name in enumerate(names)
        ]
        on.store(*people)
        users = partial(on.read.users.page, on.organization.id, None)
        for person, queries in zip(
            people,
            (
                ("michal", "walesa", "MICHAŁ"),
                ("soren", "aero", "Ærø"),
                ("dorde",),
                ("thor", "dora"),
                ("isil",),
                ("oeuvre",),
            ),
            strict=True,
        ):
            for query in queries:
                check_query(users, query, [person])

    def test_users_page_by_query_over_all_organizations(self, on: StorageHarness) -> None:
        ada = make_human_user(
            on.organization, user_name="ada", profile=Profile(display_name="Zoë", email="z@acme.example")
        )
        adam = make_service_user(on.other_organization, user_name="robot", display_name="ADAM")
        zoe = make_human_user(on.other_organization, user_name="zoe", profile=Profile(email="adele@bolt.example"))
        twin = make_human_user(on.other_organization, user_name="ADA", profile=Profile(email="z@bolt.example"))
        on.store(ada, adam, zoe, twin)

        def users(organization_id: str | None, kind: UserKind | None) -> Fetch[User]:
            return partial(on.read.users.page, organization_id, kind)

        check_query(users(None, None), "Ad", [ada, twin, adam, zoe])
        check_query(users(None, None), "ada", [ada, twin, adam])
        check_query(users(None, UserKind.HUMAN), "Ad", [ada, twin, zoe])
        check_query(users(None, UserKind.SERVICE), "Ad", [adam])
        check_query(users(on.organization.id, None), "Ad", [ada])
        check_query(users(on.other_organization.id, None), "zo", [zoe])
        check_query(users(None, None), "zo", [ada, zoe])
        check_query(users(None, None), adam.id, [adam])
        check_query(users(on.organization.id, None), adam.id, [])
        check_query(users(None, UserKind.HUMAN), adam.id, [])
        check_query(users(None, None), "%", [])
