"""Contract of the user store."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from identity.domain.organizations import Organization
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.domain.users import GLOBALLY_TRUSTED_VERIFIERS, EmailVerifier, HumanUser, Profile, Subject, User
from identity.storage.contract import factories as make
from identity.storage.contract.factories import DAY, NOW, SECOND, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness
from identity.storage.contract.page_checks import (
    Fetch,
    check_active,
    check_order,
    check_query,
    check_sorts,
    check_totals,
)
from identity.storage.errors import DuplicateValue, RowNotFound, StaleRow
from identity.storage.paging import MAX_COUNTED_ROWS, PageRequest, RowTotal, SortOrder
from identity.storage.stores.users import MAX_USERS_PER_EMAIL, USER_SORT_KEYS, UserKind

#: Pairs of spellings with the same name_key.
SPELLINGS = [("ada", "ADA"), ("straße", "STRASSE"), ("ﬁona", "Fiona"), ("Ａda", "ada"), ("zoe\u0308", "Zoë")]


class UserContract(ContractBase):
    """People and service users share user names, which are compared by name_key and unique in an organization."""

    @pytest.mark.parametrize("among", ["those that are there", "the new ones"])
    @pytest.mark.parametrize("field", ["user_name", "id"])
    def test_users_many_of_which_one_is_taken_are_not_added_and_the_transaction_goes_on(
        self, on: StorageHarness, among: str, field: str
    ) -> None:
        first, last, user = (make.human_user(on.organization) for _ in range(3))
        twin = on.human_user if among == "those that are there" else first
        value = twin.user_name.upper() if field == "user_name" else twin.id
        with on.transaction() as storage:
            with pytest.raises(DuplicateValue) as refusal:
                storage.users.add_many([first, make.human_user(on.organization, **{field: value}), last])
            assert refusal.value.field == field
            storage.users.add(user)
        found = on.read.users.find_subjects([on.human_user.id, first.id, last.id, user.id])
        assert found.keys() == {on.human_user.id, user.id}

    def test_users_many_of_an_unknown_organization_are_refused(self, on: StorageHarness) -> None:
        with pytest.raises(RowNotFound):
            on.storage.users.add_many([make.human_user()])

    def test_users_find_subject_shows_user_and_organization_as_they_are(self, on: StorageHarness) -> None:
        service_user = on.service_user
        assert on.read.users.find_subject(make_id()) is None
        assert on.read.users.find_subject(on.human_user.id) == Subject(on.human_user, on.organization)
        assert on.read.users.find_subject(service_user.id) == Subject(service_user, on.organization)
        closed = replace(on.organization, active=False, version=2)
        on.write.organizations.update(closed)
        subject = on.read.users.find_subject(on.human_user.id)
        assert subject == Subject(on.human_user, closed), "users of an inactive organization are found, marked as such"

    @pytest.mark.parametrize(("stored", "requested"), SPELLINGS)
    def test_users_are_found_and_a_taken_name_is_refused_in_every_spelling_and_kind(
        self, on: StorageHarness, stored: str, requested: str
    ) -> None:
        user = on.store_value(make.human_user(on.organization, user_name=stored))
        assert on.read.users.find_by_name(on.organization.id, requested) == user, "the name is kept as it was written"
        with pytest.raises(DuplicateValue) as refusal:
            on.write.users.add(make.service_user(on.organization, user_name=requested))
        assert refusal.value.field == "user_name"

    def test_users_of_two_organizations_may_have_the_same_user_name(self, on: StorageHarness) -> None:
        human_user, other_user = (
            make.human_user(organization, user_name="ada") for organization in (on.organization, on.other_organization)
        )
        on.store(human_user, other_user)
        for user in (human_user, other_user):
            assert on.read.users.find_by_name(user.organization_id, "ada") == user
            assert on.read.users.find_by_name(user.organization_id, "nobody") is None

    def test_users_find_by_login_name(self, on: StorageHarness) -> None:
        acme, bolt = make.organization(primary_domain="acme.example"), make.organization(primary_domain="bolt.example")
        user, human_user = make.human_user(acme, user_name="Straße"), make.human_user(bolt, user_name="straße")
        on.store(acme, bolt, user, human_user)
        assert on.read.users.find_by_login_name("straße@acme.example") == Subject(user, acme)
        assert on.read.users.find_by_login_name("STRASSE@Bolt.Example") == Subject(human_user, bolt)
        assert on.read.users.find_by_login_name("straße@other.example") is None
        assert on.read.users.find_by_login_name("nobody@acme.example") is None
        assert on.read.users.find_by_login_name("straße@acme.example@bolt.example") is None
        assert on.read.users.find_by_login_name("@acme.example") is None
        assert on.read.users.find_by_login_name("") is None

    def test_users_find_by_bare_name_the_one_who_has_had_it_for_longest(self, on: StorageHarness) -> None:
        third = make.organization()
        first = make.human_user(on.organization, user_name="Ada", named_at=NOW)
        second = make.human_user(on.other_organization, user_name="ada", named_at=NOW + SECOND)
        on.store(third, second, first, make.human_user(third, user_name="ada"))
        on.store(make.service_user(on.organization, user_name="bob"), make.human_user(third, user_name="bob"))
        find, other_organization = on.read.users.find_by_user_name_alone, on.other_organization
        for name, preferred_id in (("ADA", make_id()), ("ada", third.id)):
            assert find(name, preferred_organization_id=preferred_id) == Subject(first, on.organization)
        subject = find("ada", preferred_organization_id=other_organization.id)
        assert subject == Subject(second, other_organization), "those of one organization come first"
        assert find("bob", preferred_organization_id=third.id) is None, "nobody vouches for them"
        assert find("nobody", preferred_organization_id=third.id) is None
        assert on.read.users.find_by_login_name("ada") is None, "a login name has a domain"

    def test_users_find_by_bare_name_prefers_nobody_who_registered(self, on: StorageHarness) -> None:
        first = make.human_user(on.organization, user_name="ada", named_at=NOW)
        later = NOW + SECOND
        on.store(first, make.human_user(on.other_organization, user_name="ada", registered=True, named_at=later))
        subject = on.read.users.find_by_user_name_alone("ada", preferred_organization_id=on.other_organization.id)
        assert subject == Subject(first, on.organization)

    def test_users_find_by_email_stays_in_the_organization(self, on: StorageHarness) -> None:
        profile = Profile(email="ada@acme.example")
        user = make.human_user(on.organization, profile=profile)
        human_user = make.human_user(on.other_organization, profile=profile)
        on.store(user, human_user)
        assert on.read.users.find_by_email(on.organization.id, profile.email) == (Subject(user, on.organization),)
        assert on.read.users.find_by_email(make_id(), profile.email) == ()
        assert on.read.users.find_by_email(on.organization.id, "nobody@acme.example") == ()
        assert on.read.users.find_by_email(on.organization.id, "ada") == ()

    @pytest.mark.parametrize(
        ("requested", "is_same"),
        [
            ("FIONA@bücher.example", True),
            ("fiona@xn--bcher-kva.example", True),
            ("Fiona@BÜCHER.example", True),
            ("ﬁona@bücher.example", False),
            ("fiöna@bücher.example", False),
            ("fiona@bucher.example", False),
        ],
    )
    @pytest.mark.parametrize("domain", ["bücher.example", "xn--bcher-kva.example"])
    def test_users_find_by_email_goes_by_the_mailbox(
        self, on: StorageHarness, domain: str, requested: str, is_same: bool
    ) -> None:
        fiona = on.store_value(make.human_user(on.organization, profile=Profile(email=f"Fiona@{domain}")))
        user = on.store_value(make.human_user(on.organization, profile=Profile(email=f"ﬁona@{domain}")))
        found = [subject.user for subject in on.read.users.find_by_email(on.organization.id, requested)]
        assert found == ([fiona] if is_same else [user] if requested.startswith("ﬁ") else [])

    def test_users_find_by_email_finds_the_oldest_and_so_many_at_most(self, on: StorageHarness) -> None:
        users = [
            make.human_user(on.organization, created_at=NOW + timedelta(seconds=index), active=index > 0)
            for index in range(MAX_USERS_PER_EMAIL + 1)
        ]
        on.store(*reversed(users))
        subjects = on.read.users.find_by_email(on.organization.id, "ada@acme.example")
        assert [subject.user for subject in subjects] == users[:MAX_USERS_PER_EMAIL]

    def test_users_are_found_by_their_verified_address_alone(self, on: StorageHarness) -> None:
        verified = Profile(email="Ada@BÜCHER.example", email_verified=True)
        ada, foreign = (make.human_user(item, profile=verified) for item in (on.organization, on.other_organization))
        on.store(ada, make.human_user(on.organization, profile=Profile(email="ada@bücher.example")))
        key = "ada@xn--bcher-kva.example"
        assert on.read.users.find_by_verified_email(key) == (Subject(ada, on.organization),)
        on.store(foreign)
        subjects = on.read.users.find_by_verified_email(key, organization_id=on.other_organization.id)
        assert subjects == (Subject(foreign, on.other_organization),)
        assert {subject.user.id for subject in on.read.users.find_by_verified_email(key)} == {ada.id, foreign.id}
        for other in ("Ada@bücher.example", "ada@bücher.example", "ada@acme.example", ""):
            assert on.read.users.find_by_verified_email(other) == ()
        on.write.users.update(replace(ada, profile=Profile(email="Ada@BÜCHER.example"), version=2))
        assert on.read.users.find_by_verified_email(key, organization_id=on.organization.id) == ()

    @pytest.mark.parametrize("verifier", EmailVerifier)
    def test_users_who_proved_an_address_can_be_asked_for(self, on: StorageHarness, verifier: EmailVerifier) -> None:
        profile = Profile(email="ada@acme.example", email_verified=True)
        user = on.store_value(make.human_user(on.organization, profile=profile, email_verified_by=verifier))
        assert on.read.users.find(user.id) == user
        subjects = on.read.users.find_by_verified_email("ada@acme.example", is_proven=True)
        assert subjects == ((Subject(user, on.organization),) if verifier in GLOBALLY_TRUSTED_VERIFIERS else ())

    def test_users_with_one_verified_address_can_be_narrowed_to_those_who_can_sign_in(self, on: StorageHarness) -> None:
        profile, key = Profile(email="ada@acme.example", email_verified=True), "ada@acme.example"
        closed = make.organization(active=False)
        users = [
            make.human_user(organization, profile=profile, active=active, created_at=NOW + timedelta(seconds=index))
            for index, (organization, active) in enumerate(
                [(closed, True), (on.organization, False), (on.other_organization, True), (on.organization, True)]
            )
        ]
        on.store(closed, *reversed(users))
        assert [subject.user for subject in on.read.users.find_by_verified_email(key)] == users
        assert [subject.user for subject in on.read.users.find_by_verified_email(key, limit=2)] == users[:2]
        subjects = on.read.users.find_by_verified_email(key, active=True, limit=2)
        assert [subject.user for subject in subjects] == users[2:], "the others take nobody's place"

    def test_users_of_whom_one_verified_what_would_be_the_login_name_of_another(self, on: StorageHarness) -> None:
        def person(user_name: str, email: str, **fields: object) -> object:
            profile = Profile(email=email, email_verified=True)
            return make.human_user(on.organization, **{"user_name": user_name, "profile": profile, **fields})

        unverified = Profile(email="carl@new.example")
        on.store(
            person("ada", "Ada@New.Example"),
            person("bob", "x@other.example", profile=unverified),
            make.service_user(on.organization, user_name="carl"),
            make.human_user(on.other_organization, user_name="dora"),
            person("elsa", "dora@new.example"),
        )
        assert not on.read.users.has_email_used_as_login_name(on.organization.id, "new.example")
        on.store(person("frank", "CARL@new.example"))
        assert on.read.users.has_email_used_as_login_name(on.organization.id, "new.example")
        assert not on.read.users.has_email_used_as_login_name(on.organization.id, "w.example")
        assert not on.read.users.has_email_used_as_login_name(on.other_organization.id, "new.example")

    def test_users_addresses_proven_elsewhere_are_those_of_the_domain(self, on: StorageHarness) -> None:
        def with_address(
            email: str, organization: Organization, verifier: EmailVerifier, *, active: bool = True
        ) -> HumanUser:
            profile = Profile(email=email, email_verified=True)
            return make.human_user(organization, profile=profile, email_verified_by=verifier, active=active)

        foreign_organization, email_verifier = on.other_organization, EmailVerifier.OWN_LINK
        on.store(
            with_address("bob@bolt.example", foreign_organization, email_verifier),
            with_address("Ada@BOLT.example", foreign_organization, email_verifier),
            with_address("ada@bolt.example", foreign_organization, EmailVerifier.OPERATOR),
            with_address("eve@bolt.example", foreign_organization, EmailVerifier.MANAGER),
            with_address("dan@bolt.example", foreign_organization, email_verifier, active=False),
            with_address("joe@bolt.example", on.organization, email_verifier),
            with_address("ada@x.bolt.example", foreign_organization, email_verifier),
            with_address("ada@notbolt.example", foreign_organization, email_verifier),
        )
        find = on.read.users.list_email_keys_verified_in_other_organizations
        assert find(on.organization.id, "bolt.example", 9) == ("ada@bolt.example", "bob@bolt.example")
        assert find(on.organization.id, "bolt.example", 1) == ("ada@bolt.example",)
        assert find(foreign_organization.id, "bolt.example", 9) == ("joe@bolt.example",)

    def test_users_with_other_algorithms(self, on: StorageHarness) -> None:
        found = make.service_user(on.organization, id_token_signed_response_alg=SignatureAlgorithm.EDDSA)
        on.store(
            found,
            make.service_user(on.organization, id_token_signed_response_alg=SignatureAlgorithm.ES256),
            make.service_user(on.organization, id_token_signed_response_alg=SignatureAlgorithm.EDDSA, active=False),
        )
        assert on.read.users.list_with_other_algorithms(["ES256"], 10) == (found,)
        assert on.read.users.list_with_other_algorithms(["ES256", "EdDSA"], 10) == ()

    def test_users_to_delete_are_those_whose_moment_has_come(self, on: StorageHarness) -> None:
        late, due, coming, off = (
            make.human_user(on.organization, deletion_at=at, active=at != NOW)
            for at in (NOW - SECOND, NOW, NOW + SECOND, None)
        )
        on.store(due, off, coming, late)
        assert on.read.users.list_due_deletions(NOW, 10) == (late.id, due.id)
        assert on.read.users.list_due_deletions(NOW, 1) == (late.id,)
        assert on.read.users.list_due_deletions(NOW - 2 * SECOND, 10) == ()
        on.write.users.update(replace(late, deletion_at=None, version=late.version + 1))
        assert on.read.users.list_due_deletions(NOW, 10) == (due.id,)

    def test_users_nobody_is_found_by_an_empty_email(self, on: StorageHarness) -> None:
        on.store(make.service_user(on.organization))
        on.store(make.human_user(on.organization, profile=Profile()))
        assert on.read.users.find_by_email(on.organization.id, "") == ()
        assert on.read.users.find_by_email(on.organization.id, " ") == ()

    def test_users_are_found_by_what_they_are_changed_to(self, on: StorageHarness) -> None:
        before, organization = on.human_user, on.organization
        changed = replace(before, user_name="Grace", profile=Profile(email="new@acme.example"), version=2)
        on.write.users.update(changed)
        assert on.read.users.find_by_name(organization.id, "grace") == changed
        assert on.read.users.find_by_name(organization.id, before.user_name) is None
        assert on.read.users.find_by_email(organization.id, "NEW@acme.example") == (Subject(changed, organization),)
        assert on.read.users.find_by_email(organization.id, before.profile.email) == ()

    def test_users_update_may_respell_the_own_name(self, on: StorageHarness) -> None:
        user = on.store_value(make.human_user(on.organization, user_name="ada"))
        on.write.users.update(replace(user, user_name="ADA", version=2))
        assert on.read.users.find(user.id) == replace(user, user_name="ADA", version=2)

    def test_users_update_to_a_taken_user_name_is_refused(self, on: StorageHarness) -> None:
        with pytest.raises(DuplicateValue) as refusal:
            on.write.users.update(replace(on.human_user, user_name=on.service_user.user_name.upper(), version=2))
        assert refusal.value.field == "user_name"

    def test_users_the_name_of_a_removed_user_is_free(self, on: StorageHarness) -> None:
        on.write.users.delete(on.human_user.id)
        on.store(make.service_user(on.organization, user_name=on.human_user.user_name))

    def test_users_find_many_of_both_kinds(self, on: StorageHarness) -> None:
        organization, human_user = on.organization, on.human_user
        robot = on.store_value(make.service_user(on.other_organization))
        assert on.read.users.find_subjects([human_user.id, make_id(), robot.id]) == {
            human_user.id: Subject(human_user, organization),
            robot.id: Subject(robot, on.other_organization),
        }
        assert on.read.users.find_subjects(()) == {}

    def test_users_the_last_sign_in_moves_forward_alone(self, on: StorageHarness) -> None:
        human_user, service_user = on.human_user, on.service_user
        for at, expected in ((NOW, NOW), (NOW - SECOND, NOW), (NOW + SECOND, NOW + SECOND)):
            with on.transaction() as storage:
                for user_id in (human_user.id, service_user.id, make_id()):
                    storage.users.update_last_sign_in(user_id, at)
            assert on.read.users.find(human_user.id) == replace(human_user, last_sign_in_at=expected)
            assert on.read.users.find(service_user.id) == service_user

    def test_users_update_keeps_the_last_sign_in(self, on: StorageHarness) -> None:
        on.write.users.update_last_sign_in(on.human_user.id, NOW)
        changed = replace(on.human_user, user_name="lovelace", version=2)
        on.write.users.update(changed)
        assert on.read.users.find(on.human_user.id) == replace(changed, last_sign_in_at=NOW)


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
        added = [make.human_user(on.organization, user_name=f"p{number}") for number in range(7)]
        robot = make.service_user(on.organization)
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
            return make.human_user(organization, user_name=user_name, profile=Profile(**profile))  # type: ignore[arg-type]

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
            make.human_user(on.other_organization, user_name="karl"),
            make.service_user(organization, user_name="kar"),
        )
        check_query(people, query, [row for row in rows if row.user_name in user_names])

    def test_users_page_of_service_users_by_any_part_of_what_is_known_of_them(
        self, on: StorageHarness, service_users: Fetch[User]
    ) -> None:
        robot = make.service_user(on.organization, user_name="fetcher", display_name="Größe Messer")
        service_user = make.service_user(on.organization, user_name="worker", display_name="Worker")
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
            make.human_user(
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
            *(make.human_user(on.organization, user_name=f"crowd{number:04}") for number in range(MAX_COUNTED_ROWS + 1))
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
            make.human_user(on.organization, user_name="Ada"),
            make.service_user(on.organization, user_name="bob", active=False),
            make.human_user(on.organization, user_name="dora"),
        ]
        foreign: list[User] = [
            make.service_user(on.other_organization, user_name="Carl"),
            make.human_user(on.other_organization, user_name="eve", active=False),
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
            make.human_user(on.organization, user_name=f"person-{index}", profile=Profile(display_name=name))
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
        ada = make.human_user(
            on.organization, user_name="ada", profile=Profile(display_name="Zoë", email="z@acme.example")
        )
        adam = make.service_user(on.other_organization, user_name="robot", display_name="ADAM")
        zoe = make.human_user(on.other_organization, user_name="zoe", profile=Profile(email="adele@bolt.example"))
        twin = make.human_user(on.other_organization, user_name="ADA", profile=Profile(email="z@bolt.example"))
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

    def test_users_agents_are_service_users_listed_and_stopped_by_their_owner(self, on: StorageHarness) -> None:
        newest, oldest = make.agent(on.human_user, created_at=NOW + SECOND), make.agent(on.human_user, may_manage=True)
        stopped = make.agent(on.human_user, created_at=NOW + DAY, stopped_at=NOW)
        foreign = on.store_value(make.agent(on.store_value(make.human_user(on.organization))))
        on.store(newest, oldest, stopped)
        of_owner = partial(on.read.users.list_agents, on.human_user.id)
        assert of_owner() == (oldest, newest, stopped)
        assert on.read.users.list_agents(make_id()) == ()
        assert on.read.users.find_subject(oldest.id) == Subject(oldest, on.organization)

        def listed(kind: UserKind) -> set[str]:
            return {user.id for user in on.read.users.page(on.organization.id, kind)}

        service_user, agents = on.service_user, {newest.id, oldest.id, stopped.id, foreign.id}
        assert listed(UserKind.AGENT) == agents
        assert listed(UserKind.SERVICE) == {service_user.id} | agents
        limited = on.read.users.page(on.organization.id, UserKind.SERVICE, with_agents=False)
        assert {user.id for user in limited} == {service_user.id}
        assert not listed(UserKind.HUMAN) & agents

        assert on.write.users.stop_agents(on.human_user.id, NOW + SECOND) == 2
        later: dict[str, Any] = {"stopped_at": NOW + SECOND, "changed_at": NOW + SECOND, "version": 2}
        assert of_owner() == (replace(oldest, **later), replace(newest, **later), stopped)
        assert on.read.users.find(foreign.id) == foreign
        assert on.write.users.stop_agents(on.human_user.id, NOW + DAY) == 0
        with pytest.raises(StaleRow):
            on.write.users.update(replace(oldest, may_manage=False, version=2))
        confirmed = replace(oldest, stopped_at=None, version=3)
        on.write.users.update(confirmed)
        assert on.read.users.find(oldest.id) == confirmed
        assert not Subject(stopped, on.organization).is_active

    def test_users_keys_of_agents_are_found_with_them(self, on: StorageHarness) -> None:
        agent = make.agent(on.human_user)
        key = make.service_user_key(agent)
        on.store(agent, key)
        found = on.read.credentials.find_key_with_subject(key.id, agent.id)
        assert found == (key, Subject(agent, on.organization))


class PasswordContract(ContractBase):
    """A user has at most one password hash."""

    def test_passwords_set_replaces_the_one_before(self, on: StorageHarness) -> None:
        first = make.password_hash(on.human_user, must_change=True)
        second = replace(first, hash="$argon2id$new", changed_at=first.changed_at + SECOND, must_change=False)
        on.store(first)
        on.store(second)
        assert on.read.users.find_password(on.human_user.id) == second

    def test_passwords_is_still(self, on: StorageHarness) -> None:
        human_user = on.human_user
        without = make.human_user(on.organization)
        password = make.password_hash(human_user)
        on.store(without, password)
        with on.transaction() as storage:
            assert storage.users.lock_password_hash(human_user.id, password.hash)
            assert not storage.users.lock_password_hash(human_user.id, "$argon2id$other")
            assert not storage.users.lock_password_hash(without.id, password.hash)
        with on.transaction() as storage:
            storage.users.set_password(replace(password, hash="$argon2id$new"))
            assert not storage.users.lock_password_hash(human_user.id, password.hash)

    def test_passwords_must_change(self, on: StorageHarness) -> None:
        free, without = make.human_user(on.organization), make.human_user(on.organization)
        on.store(free, without, make.password_hash(on.human_user, must_change=True), make.password_hash(free))
        found = on.read.users.list_must_change_password([on.human_user.id, free.id, without.id])
        assert found == {on.human_user.id: True, free.id: False}
        assert on.read.users.list_must_change_password({free.id}) == {free.id: False}
        assert on.read.users.list_must_change_password(()) == {}
