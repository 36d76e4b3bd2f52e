"""What is demanded of the user store."""

from dataclasses import replace
from datetime import timedelta

import pytest

from identity.domain.permissions import INSTANCE_KEY
from identity.domain.service_user_keys import ServiceUserKey
from identity.domain.users import HumanUser, Profile, Subject, User
from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import (
    NOW,
    a_code,
    a_family,
    a_human_user,
    a_key,
    a_manager,
    a_password,
    a_refresh_token,
    a_service_user,
    a_user_grant,
    an_access_token,
    an_id,
    an_organization,
)
from identity.storage.contract.paging import (
    Fetch,
    check_active,
    check_order,
    check_query,
    check_sorts,
    check_totals,
    fetching,
)
from identity.storage.errors import Duplicate, Missing
from identity.storage.paging import MOST_COUNTED, PageRequest, Sort, Total
from identity.storage.stores.users import MOST_WITH_ONE_EMAIL, ORDERS, UserKind

#: Pairs of spellings that name_key makes one.
SPELLINGS = [("ada", "ADA"), ("straße", "STRASSE"), ("ﬁona", "Fiona"), ("Ａda", "ada"), ("zoe\u0308", "Zoë")]


class UserContract(ContractBase):
    """People and service users share user names, which are compared by name_key and unique in an organization."""

    @pytest.fixture
    def people(self, on: On) -> Fetch[User]:
        """The list of the people of ``organization``."""
        organization = on.organization
        return fetching(
            on.reading, lambda storage, request: storage.users.page(organization.id, UserKind.HUMAN, request)
        )

    @pytest.fixture
    def service_users(self, on: On) -> Fetch[User]:
        """The list of the service users of ``organization``."""
        organization = on.organization
        return fetching(
            on.reading, lambda storage, request: storage.users.page(organization.id, UserKind.SERVICE, request)
        )

    def test_users_many_are_added_as_one_by_one(self, on: On, people: Fetch[User], service_users: Fetch[User]) -> None:
        added = [a_human_user(on.organization, user_name=f"p{number}") for number in range(7)]
        robot = a_service_user(on.organization)
        with on.writing() as storage:
            storage.users.add_many([*added, robot])
            storage.users.add_many([])
        assert list(people(PageRequest())) == added
        assert list(service_users(PageRequest())) == [robot]

    @pytest.mark.parametrize("among", ["those that are there", "the new ones"])
    @pytest.mark.parametrize("field", ["user_name", "id"])
    def test_users_many_of_which_one_is_taken_are_not_added_and_the_transaction_goes_on(
        self, on: On, among: str, field: str
    ) -> None:
        first, last, other = (a_human_user(on.organization) for _ in range(3))
        twin = on.human_user if among == "those that are there" else first
        value = twin.user_name.upper() if field == "user_name" else twin.id
        with on.writing() as storage:
            with pytest.raises(Duplicate) as refusal:
                storage.users.add_many([first, a_human_user(on.organization, **{field: value}), last])
            assert refusal.value.field == field
            storage.users.add(other)
        found = on.read.users.find_subjects([on.human_user.id, first.id, last.id, other.id])
        assert found.keys() == {on.human_user.id, other.id}

    def test_users_many_of_an_unknown_organization_are_refused(self, on: On) -> None:
        with pytest.raises(Missing):
            on.storage.users.add_many([a_human_user()])

    def test_users_find_of_an_unknown_id(self, on: On) -> None:
        on.save(a_human_user(on.organization))
        assert on.read.users.find(an_id()) is None
        assert on.read.users.find_subject(an_id()) is None

    def test_users_find_subject_shows_user_and_organization_as_they_are(self, on: On) -> None:
        service_user = on.service_user
        assert on.read.users.find_subject(on.human_user.id) == Subject(on.human_user, on.organization)
        assert on.read.users.find_subject(service_user.id) == Subject(service_user, on.organization)
        closed = replace(on.organization, active=False, version=2)
        on.write.organizations.update(closed)
        subject = on.read.users.find_subject(on.human_user.id)
        assert subject == Subject(on.human_user, closed), "users of an inactive organization are found, marked as such"

    @pytest.mark.parametrize(("first", "second"), SPELLINGS)
    def test_users_a_taken_user_name_is_refused_in_every_spelling_and_kind(
        self, on: On, first: str, second: str
    ) -> None:
        on.save(a_human_user(on.organization, user_name=first))
        with pytest.raises(Duplicate) as refusal:
            on.write.users.add(a_service_user(on.organization, user_name=second))
        assert refusal.value.field == "user_name"

    def test_users_two_organizations_may_have_the_same_user_name(self, on: On) -> None:
        here, there = (
            a_human_user(on.organization, user_name="ada"),
            a_human_user(on.other_organization, user_name="ada"),
        )
        on.save(here, there)
        assert on.read.users.find_by_name(on.organization.id, "ada") == here
        assert on.read.users.find_by_name(on.other_organization.id, "ada") == there

    @pytest.mark.parametrize(("stored", "asked"), SPELLINGS)
    def test_users_find_by_name_takes_every_spelling(self, on: On, stored: str, asked: str) -> None:
        user = on.saved(a_human_user(on.organization, user_name=stored))
        found = on.read.users.find_by_name(on.organization.id, asked)
        assert found == user
        assert found.user_name == stored, "the name is kept as it was written"

    def test_users_find_by_name_stays_in_the_organization(self, on: On) -> None:
        assert on.read.users.find_by_name(on.other_organization.id, on.human_user.user_name) is None
        assert on.read.users.find_by_name(on.human_user.organization_id, "nobody") is None

    def test_users_find_by_login_name(self, on: On) -> None:
        acme, bolt = an_organization(primary_domain="acme.example"), an_organization(primary_domain="bolt.example")
        here, there = a_human_user(acme, user_name="Straße"), a_human_user(bolt, user_name="straße")
        on.save(acme, bolt, here, there)
        assert on.read.users.find_by_login_name("straße@acme.example") == Subject(here, acme)
        assert on.read.users.find_by_login_name("STRASSE@Bolt.Example") == Subject(there, bolt)
        assert on.read.users.find_by_login_name("straße@other.example") is None
        assert on.read.users.find_by_login_name("nobody@acme.example") is None
        assert on.read.users.find_by_login_name("straße@acme.example@bolt.example") is None
        assert on.read.users.find_by_login_name("@acme.example") is None
        assert on.read.users.find_by_login_name("") is None

    def test_users_find_by_bare_name_the_one_who_has_had_it_for_longest(self, on: On) -> None:
        third = an_organization()
        first = a_human_user(on.organization, user_name="Ada", named_at=NOW)
        second = a_human_user(on.other_organization, user_name="ada", named_at=NOW + timedelta(seconds=1))
        on.save(third, second, first, a_human_user(third, user_name="ada"))
        on.save(a_service_user(on.organization, user_name="bob"), a_human_user(third, user_name="bob"))
        assert on.read.users.find_by_bare_name("ADA", first_in=an_id()) == Subject(first, on.organization)
        assert on.read.users.find_by_bare_name("ada", first_in=third.id) == Subject(first, on.organization)
        found = on.read.users.find_by_bare_name("ada", first_in=on.other_organization.id)
        assert found == Subject(second, on.other_organization), "those of one organization come first"
        assert on.read.users.find_by_bare_name("bob", first_in=third.id) is None, "nobody vouches for them"
        assert on.read.users.find_by_bare_name("nobody", first_in=third.id) is None
        assert on.read.users.find_by_login_name("ada") is None, "a login name has a domain"

    def test_users_find_by_bare_name_prefers_nobody_who_registered(self, on: On) -> None:
        first = a_human_user(on.organization, user_name="ada", named_at=NOW)
        later = NOW + timedelta(seconds=1)
        on.save(first, a_human_user(on.other_organization, user_name="ada", registered=True, named_at=later))
        found = on.read.users.find_by_bare_name("ada", first_in=on.other_organization.id)
        assert found == Subject(first, on.organization)

    @pytest.mark.parametrize(("stored", "asked"), SPELLINGS)
    def test_users_find_by_email_takes_every_spelling(self, on: On, stored: str, asked: str) -> None:
        user = a_human_user(on.organization, profile=Profile(email=f"{stored}@acme.example"))
        on.save(user, a_human_user(on.organization, profile=Profile(email=f"x{stored}@acme.example")))
        found = on.read.users.find_by_email(on.organization.id, f"{asked}@ACME.example")
        assert found == (Subject(user, on.organization),)

    def test_users_find_by_email_stays_in_the_organization(self, on: On) -> None:
        profile = Profile(email="ada@acme.example")
        here, there = (
            a_human_user(on.organization, profile=profile),
            a_human_user(on.other_organization, profile=profile),
        )
        on.save(here, there)
        assert on.read.users.find_by_email(on.organization.id, profile.email) == (Subject(here, on.organization),)
        assert on.read.users.find_by_email(an_id(), profile.email) == ()
        assert on.read.users.find_by_email(on.organization.id, "nobody@acme.example") == ()
        assert on.read.users.find_by_email(on.organization.id, "ada") == ()

    def test_users_find_by_email_finds_the_oldest_and_so_many_at_most(self, on: On) -> None:
        users = [
            a_human_user(on.organization, created_at=NOW + timedelta(seconds=index), active=index > 0)
            for index in range(MOST_WITH_ONE_EMAIL + 1)
        ]
        on.save(*reversed(users))
        found = on.read.users.find_by_email(on.organization.id, "ada@acme.example")
        assert [subject.user for subject in found] == users[:MOST_WITH_ONE_EMAIL]

    def test_users_nobody_is_found_by_an_empty_email(self, on: On) -> None:
        on.save(a_service_user(on.organization))
        on.save(a_human_user(on.organization, profile=Profile()))
        assert on.read.users.find_by_email(on.organization.id, "") == ()
        assert on.read.users.find_by_email(on.organization.id, " ") == ()

    def test_users_find_by_email_follows_an_update(self, on: On) -> None:
        organization = on.organization
        changed = replace(on.human_user, profile=Profile(email="new@acme.example"), version=2)
        on.write.users.update(changed)
        assert on.read.users.find_by_email(organization.id, "NEW@acme.example") == (Subject(changed, organization),)
        assert on.read.users.find_by_email(organization.id, "ada@acme.example") == ()

    def test_users_find_by_name_follows_an_update(self, on: On) -> None:
        changed = replace(on.human_user, user_name="Grace", version=2)
        on.write.users.update(changed)
        assert on.read.users.find_by_name(changed.organization_id, "grace") == changed
        assert on.read.users.find_by_name(changed.organization_id, on.human_user.user_name) is None

    def test_users_update_may_respell_the_own_name(self, on: On) -> None:
        user = on.saved(a_human_user(on.organization, user_name="ada"))
        on.write.users.update(replace(user, user_name="ADA", version=2))
        assert on.read.users.find(user.id) == replace(user, user_name="ADA", version=2)

    def test_users_update_to_a_taken_user_name_is_refused(self, on: On) -> None:
        with pytest.raises(Duplicate) as refusal:
            on.write.users.update(replace(on.human_user, user_name=on.service_user.user_name.upper(), version=2))
        assert refusal.value.field == "user_name"

    def test_users_remove_takes_everything_of_a_person_along(self, on: On) -> None:
        human_user = on.human_user
        password, grant, manager = a_password(human_user), a_user_grant(human_user, on.project), a_manager(human_user)
        family = a_family(human_user, on.application)
        code, token, refresh = (
            a_code(family),
            an_access_token(human_user, on.application, family),
            a_refresh_token(family),
        )
        on.save(password, grant, manager, family, code, token, refresh)
        on.write.users.remove(human_user.id)
        assert on.read.users.find(human_user.id) is None
        assert on.read.users.find_by_name(human_user.organization_id, human_user.user_name) is None
        assert on.read.users.find_password(human_user.id) is None
        assert on.read.user_grants.find(grant.id) is None
        assert on.read.managers.find(manager.id) is None
        assert on.read.managers.page(INSTANCE_KEY).items == ()
        assert on.read.tokens.find_family(family.id) is None
        assert on.read.tokens.find_access(token.digest) is None
        assert on.read.tokens.find_refresh(refresh.digest) is None
        with pytest.raises(Missing):
            on.write.tokens.redeem_code(code.digest, client_id=on.application.id, at=code.issued_at)

    def test_users_remove_takes_everything_of_a_service_user_along(self, on: On) -> None:
        key = a_key(on.service_user)
        token = an_access_token(on.service_user, key_id=key.id)
        on.save(key, token)
        on.write.users.remove(on.service_user.id)
        assert on.read.credentials.find(ServiceUserKey, key.id, on.service_user.id) is None
        assert on.read.credentials.find_signer(key.id, on.service_user.id) is None
        assert on.read.tokens.find_access(token.digest) is None
        assert on.read.tokens.find_issued(token.digest) is None

    def test_users_remove_leaves_other_users_alone(self, on: On) -> None:
        human_user = on.human_user
        key, token, manager = a_key(on.service_user), an_access_token(on.service_user), a_manager(on.service_user)
        on.save(key, token, manager)
        on.write.users.remove(human_user.id)
        assert on.read.users.find(on.service_user.id) == on.service_user
        assert on.read.credentials.find(ServiceUserKey, key.id, on.service_user.id) == key
        assert on.read.tokens.find_access(token.digest) == token
        assert on.read.managers.find(manager.id) == manager

    def test_users_the_name_of_a_removed_user_is_free(self, on: On) -> None:
        on.write.users.remove(on.human_user.id)
        on.save(a_service_user(on.organization, user_name=on.human_user.user_name))

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
        self, on: On, people: Fetch[User], query: str, user_names: set[str]
    ) -> None:
        organization = on.organization

        def person(user_name: str, **profile: str) -> HumanUser:
            return a_human_user(organization, user_name=user_name, profile=Profile(**profile))  # type: ignore[arg-type]

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
        on.save(
            *rows, a_human_user(on.other_organization, user_name="karl"), a_service_user(organization, user_name="kar")
        )
        check_query(people, query, [row for row in rows if row.user_name in user_names])

    def test_users_page_of_service_users_by_any_part_of_what_is_known_of_them(
        self, on: On, service_users: Fetch[User]
    ) -> None:
        robot = a_service_user(on.organization, user_name="fetcher", display_name="Größe Messer")
        other = a_service_user(on.organization, user_name="worker", display_name="Worker")
        on.save(robot, other)
        check_query(service_users, "FETCH", [robot])
        check_query(service_users, "GRÖSSE", [robot])
        check_query(service_users, "messer grosse", [robot])
        check_query(service_users, "etcher", [robot])
        check_query(service_users, robot.id[:7], [])
        check_query(service_users, robot.id[9:], [])
        check_query(service_users, robot.id.upper(), [robot])
        check_query(service_users, robot.id[:13], [robot])
        check_query(service_users, other.id, [other])

    def test_users_page_sorted_by_each_of_its_orders(self, on: On, people: Fetch[User]) -> None:
        moments = [NOW + timedelta(seconds=seconds) for seconds in (3, 1, 2, 2)]
        rows = [
            a_human_user(
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
        on.save(*rows)
        check_sorts(people, ORDERS, "of-all")
        check_totals(people, rows=4, active=4)

    def test_users_page_finds_and_counts_what_is_found_often(self, on: On, people: Fetch[User]) -> None:
        on.save(*(a_human_user(on.organization, user_name=f"crowd{number:04}") for number in range(MOST_COUNTED + 1)))
        for query, total in (("crowd", Total(MOST_COUNTED, exact=False)), ("crowd0", Total(MOST_COUNTED))):
            page = people(PageRequest(limit=2, query=query, sort=Sort("user_name", descending=True), counted=True))
            assert page.total == total
            assert page.items[0].user_name == ("crowd1000" if query == "crowd" else "crowd0999")
        assert people(PageRequest(limit=2, counted=True)).total == Total(MOST_COUNTED, exact=False)
        assert [user.user_name for user in people(PageRequest(query="crowd0500"))] == ["crowd0500"]

    def test_users_page_finds_what_was_changed(self, on: On, people: Fetch[User]) -> None:
        profile = Profile(given_name="Grace", family_name="Hopper")
        changed = replace(on.human_user, user_name="gh", profile=profile, version=2)
        on.write.users.update(changed)
        check_query(people, on.human_user.user_name, [])
        check_query(people, "hopper", [changed])

    def test_users_find_many_of_both_kinds(self, on: On) -> None:
        organization, human_user = on.organization, on.human_user
        robot = on.saved(a_service_user(on.other_organization))
        assert on.read.users.find_subjects([human_user.id, an_id(), robot.id]) == {
            human_user.id: Subject(human_user, organization),
            robot.id: Subject(robot, on.other_organization),
        }
        assert on.read.users.find_subjects(()) == {}

    def test_users_the_last_sign_in_moves_forward_alone(self, on: On) -> None:
        human_user, service_user = on.human_user, on.service_user
        second = timedelta(seconds=1)
        for at, expected in ((NOW, NOW), (NOW - second, NOW), (NOW + second, NOW + second)):
            with on.writing() as storage:
                for user_id in (human_user.id, service_user.id, an_id()):
                    storage.users.note_sign_in(user_id, at)
            assert on.read.users.find(human_user.id) == replace(human_user, last_sign_in_at=expected)
            assert on.read.users.find(service_user.id) == service_user

    def test_users_update_keeps_the_last_sign_in(self, on: On) -> None:
        on.write.users.note_sign_in(on.human_user.id, NOW)
        changed = replace(on.human_user, user_name="lovelace", version=2)
        on.write.users.update(changed)
        assert on.read.users.find(on.human_user.id) == replace(changed, last_sign_in_at=NOW)

    def test_users_page_of_both_kinds_and_all_organizations(self, on: On) -> None:
        own: list[User] = [
            a_human_user(on.organization, user_name="Ada"),
            a_service_user(on.organization, user_name="bob", active=False),
            a_human_user(on.organization, user_name="dora"),
        ]
        foreign: list[User] = [
            a_service_user(on.other_organization, user_name="Carl"),
            a_human_user(on.other_organization, user_name="eve", active=False),
        ]
        on.save(*reversed(own), *reversed(foreign))
        everyone: list[User] = sorted([*own, *foreign], key=lambda user: user.user_name.lower())

        def users(organization_id: str | None, kind: UserKind | None) -> Fetch[User]:
            return fetching(on.reading, lambda storage, request: storage.users.page(organization_id, kind, request))

        check_order(users(on.organization.id, None), own)
        check_order(users(on.other_organization.id, None), foreign)
        check_order(users(None, None), everyone)
        check_order(users(None, UserKind.HUMAN), [own[0], own[2], foreign[1]])
        check_order(users(None, UserKind.SERVICE), [own[1], foreign[0]])
        check_order(users("", None), [])
        check_active(users(None, None), active=[own[0], foreign[0], own[2]], inactive=[own[1], foreign[1]])

    def test_users_page_by_query_over_all_organizations(self, on: On) -> None:
        ada = a_human_user(
            on.organization, user_name="ada", profile=Profile(display_name="Zoë", email="z@acme.example")
        )
        adam = a_service_user(on.other_organization, user_name="robot", display_name="ADAM")
        zoe = a_human_user(on.other_organization, user_name="zoe", profile=Profile(email="adele@bolt.example"))
        twin = a_human_user(on.other_organization, user_name="ADA", profile=Profile(email="z@bolt.example"))
        on.save(ada, adam, zoe, twin)

        def users(organization_id: str | None, kind: UserKind | None) -> Fetch[User]:
            return fetching(on.reading, lambda storage, request: storage.users.page(organization_id, kind, request))

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
