"""Contract of the user store."""

from dataclasses import replace
from datetime import timedelta

import pytest

from identity.domain.organizations import Organization
from identity.domain.users import GLOBALLY_TRUSTED_VERIFIERS, EmailVerifier, HumanUser, Profile, Subject
from identity.storage.contract.factories import NOW, make_human_user, make_id, make_organization, make_service_user
from identity.storage.contract.harness import ContractBase, StorageHarness
from identity.storage.errors import DuplicateValue, RowNotFound
from identity.storage.stores.users import MAX_USERS_PER_EMAIL

#: Pairs of spellings with the same name_key.
SPELLINGS = [("ada", "ADA"), ("straße", "STRASSE"), ("ﬁona", "Fiona"), ("Ａda", "ada"), ("zoe\u0308", "Zoë")]


class UserContract(ContractBase):
    """People and service users share user names, which are compared by name_key and unique in an organization."""

    @pytest.mark.parametrize("among", ["those that are there", "the new ones"])
    @pytest.mark.parametrize("field", ["user_name", "id"])
    def test_users_many_of_which_one_is_taken_are_not_added_and_the_transaction_goes_on(
        self, on: StorageHarness, among: str, field: str
    ) -> None:
        first, last, user = (make_human_user(on.organization) for _ in range(3))
        twin = on.human_user if among == "those that are there" else first
        value = twin.user_name.upper() if field == "user_name" else twin.id
        with on.transaction() as storage:
            with pytest.raises(DuplicateValue) as refusal:
                storage.users.add_many([first, make_human_user(on.organization, **{field: value}), last])
            assert refusal.value.field == field
            storage.users.add(user)
        found = on.read.users.find_subjects([on.human_user.id, first.id, last.id, user.id])
        assert found.keys() == {on.human_user.id, user.id}

    def test_users_many_of_an_unknown_organization_are_refused(self, on: StorageHarness) -> None:
        with pytest.raises(RowNotFound):
            on.storage.users.add_many([make_human_user()])

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
        user = on.store_value(make_human_user(on.organization, user_name=stored))
        assert on.read.users.find_by_name(on.organization.id, requested) == user, "the name is kept as it was written"
        with pytest.raises(DuplicateValue) as refusal:
            on.write.users.add(make_service_user(on.organization, user_name=requested))
        assert refusal.value.field == "user_name"

    def test_users_of_two_organizations_may_have_the_same_user_name(self, on: StorageHarness) -> None:
        human_user, other_user = (
            make_human_user(organization, user_name="ada") for organization in (on.organization, on.other_organization)
        )
        on.store(human_user, other_user)
        for user in (human_user, other_user):
            assert on.read.users.find_by_name(user.organization_id, "ada") == user
            assert on.read.users.find_by_name(user.organization_id, "nobody") is None

    def test_users_find_by_login_name(self, on: StorageHarness) -> None:
        acme, bolt = make_organization(primary_domain="acme.example"), make_organization(primary_domain="bolt.example")
        user, human_user = make_human_user(acme, user_name="Straße"), make_human_user(bolt, user_name="straße")
        on.store(acme, bolt, user, human_user)
        assert on.read.users.find_by_login_name("straße@acme.example") == Subject(user, acme)
        assert on.read.users.find_by_login_name("STRASSE@Bolt.Example") == Subject(human_user, bolt)
        assert on.read.users.find_by_login_name("straße@other.example") is None
        assert on.read.users.find_by_login_name("nobody@acme.example") is None
        assert on.read.users.find_by_login_name("straße@acme.example@bolt.example") is None
        assert on.read.users.find_by_login_name("@acme.example") is None
        assert on.read.users.find_by_login_name("") is None

    def test_users_find_by_bare_name_the_one_who_has_had_it_for_longest(self, on: StorageHarness) -> None:
        third = make_organization()
        first = make_human_user(on.organization, user_name="Ada", named_at=NOW)
        second = make_human_user(on.other_organization, user_name="ada", named_at=NOW + timedelta(seconds=1))
        on.store(third, second, first, make_human_user(third, user_name="ada"))
        on.store(make_service_user(on.organization, user_name="bob"), make_human_user(third, user_name="bob"))
        assert on.read.users.find_by_user_name_alone("ADA", preferred_organization_id=make_id()) == Subject(
            first, on.organization
        )
        assert on.read.users.find_by_user_name_alone("ada", preferred_organization_id=third.id) == Subject(
            first, on.organization
        )
        subject = on.read.users.find_by_user_name_alone("ada", preferred_organization_id=on.other_organization.id)
        assert subject == Subject(second, on.other_organization), "those of one organization come first"
        assert on.read.users.find_by_user_name_alone("bob", preferred_organization_id=third.id) is None, (
            "nobody vouches for them"
        )
        assert on.read.users.find_by_user_name_alone("nobody", preferred_organization_id=third.id) is None
        assert on.read.users.find_by_login_name("ada") is None, "a login name has a domain"

    def test_users_find_by_bare_name_prefers_nobody_who_registered(self, on: StorageHarness) -> None:
        first = make_human_user(on.organization, user_name="ada", named_at=NOW)
        later = NOW + timedelta(seconds=1)
        on.store(first, make_human_user(on.other_organization, user_name="ada", registered=True, named_at=later))
        subject = on.read.users.find_by_user_name_alone("ada", preferred_organization_id=on.other_organization.id)
        assert subject == Subject(first, on.organization)

    def test_users_find_by_email_stays_in_the_organization(self, on: StorageHarness) -> None:
        profile = Profile(email="ada@acme.example")
        user = make_human_user(on.organization, profile=profile)
        human_user = make_human_user(on.other_organization, profile=profile)
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
        fiona = on.store_value(make_human_user(on.organization, profile=Profile(email=f"Fiona@{domain}")))
        user = on.store_value(make_human_user(on.organization, profile=Profile(email=f"ﬁona@{domain}")))
        found = [subject.user for subject in on.read.users.find_by_email(on.organization.id, requested)]
        assert found == ([fiona] if is_same else [user] if requested.startswith("ﬁ") else [])

    def test_users_find_by_email_finds_the_oldest_and_so_many_at_most(self, on: StorageHarness) -> None:
        users = [
            make_human_user(on.organization, created_at=NOW + timedelta(seconds=index), active=index > 0)
            for index in range(MAX_USERS_PER_EMAIL + 1)
        ]
        on.store(*reversed(users))
        subjects = on.read.users.find_by_email(on.organization.id, "ada@acme.example")
        assert [subject.user for subject in subjects] == users[:MAX_USERS_PER_EMAIL]

    def test_users_are_found_by_their_verified_address_alone(self, on: StorageHarness) -> None:
        verified = Profile(email="Ada@BÜCHER.example", email_verified=True)
        ada, foreign = (make_human_user(item, profile=verified) for item in (on.organization, on.other_organization))
        on.store(ada, make_human_user(on.organization, profile=Profile(email="ada@bücher.example")))
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
        user = on.store_value(make_human_user(on.organization, profile=profile, email_verified_by=verifier))
        assert on.read.users.find(user.id) == user
        subjects = on.read.users.find_by_verified_email("ada@acme.example", is_proven=True)
        assert subjects == ((Subject(user, on.organization),) if verifier in GLOBALLY_TRUSTED_VERIFIERS else ())

    def test_users_with_one_verified_address_can_be_narrowed_to_those_who_can_sign_in(self, on: StorageHarness) -> None:
        profile, key = Profile(email="ada@acme.example", email_verified=True), "ada@acme.example"
        closed = make_organization(active=False)
        users = [
            make_human_user(organization, profile=profile, active=active, created_at=NOW + timedelta(seconds=index))
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
            return make_human_user(on.organization, **{"user_name": user_name, "profile": profile, **fields})

        unverified = Profile(email="carl@new.example")
        on.store(
            person("ada", "Ada@New.Example"),
            person("bob", "x@other.example", profile=unverified),
            make_service_user(on.organization, user_name="carl"),
            make_human_user(on.other_organization, user_name="dora"),
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
            return make_human_user(organization, profile=profile, email_verified_by=verifier, active=active)

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

    def test_users_to_delete_are_those_whose_moment_has_come(self, on: StorageHarness) -> None:
        second = timedelta(seconds=1)
        late, due, coming, off = (
            make_human_user(on.organization, deletion_at=at, active=at != NOW)
            for at in (NOW - second, NOW, NOW + second, None)
        )
        on.store(due, off, coming, late)
        assert on.read.users.list_due_deletions(NOW, 10) == (late.id, due.id)
        assert on.read.users.list_due_deletions(NOW, 1) == (late.id,)
        assert on.read.users.list_due_deletions(NOW - 2 * second, 10) == ()
        on.write.users.update(replace(late, deletion_at=None, version=late.version + 1))
        assert on.read.users.list_due_deletions(NOW, 10) == (due.id,)

    def test_users_nobody_is_found_by_an_empty_email(self, on: StorageHarness) -> None:
        on.store(make_service_user(on.organization))
        on.store(make_human_user(on.organization, profile=Profile()))
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
        user = on.store_value(make_human_user(on.organization, user_name="ada"))
        on.write.users.update(replace(user, user_name="ADA", version=2))
        assert on.read.users.find(user.id) == replace(user, user_name="ADA", version=2)

    def test_users_update_to_a_taken_user_name_is_refused(self, on: StorageHarness) -> None:
        with pytest.raises(DuplicateValue) as refusal:
            on.write.users.update(replace(on.human_user, user_name=on.service_user.user_name.upper(), version=2))
        assert refusal.value.field == "user_name"

    def test_users_the_name_of_a_removed_user_is_free(self, on: StorageHarness) -> None:
        on.write.users.delete(on.human_user.id)
        on.store(make_service_user(on.organization, user_name=on.human_user.user_name))

    def test_users_find_many_of_both_kinds(self, on: StorageHarness) -> None:
        organization, human_user = on.organization, on.human_user
        robot = on.store_value(make_service_user(on.other_organization))
        assert on.read.users.find_subjects([human_user.id, make_id(), robot.id]) == {
            human_user.id: Subject(human_user, organization),
            robot.id: Subject(robot, on.other_organization),
        }
        assert on.read.users.find_subjects(()) == {}

    def test_users_the_last_sign_in_moves_forward_alone(self, on: StorageHarness) -> None:
        human_user, service_user = on.human_user, on.service_user
        second = timedelta(seconds=1)
        for at, expected in ((NOW, NOW), (NOW - second, NOW), (NOW + second, NOW + second)):
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
