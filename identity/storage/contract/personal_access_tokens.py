"""What is demanded of the personal access token store."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from identity.domain.organizations import Organization
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.users import ServiceUser
from identity.storage.contract.base import ContractBase, InTransaction, Reading, Save
from identity.storage.contract.factories import a_key, a_personal_access_token, a_service_user, an_access_token, an_id
from identity.storage.contract.paging import Fetch, check_insertion, check_order, check_removal, check_ties, fetching
from identity.storage.errors import Duplicate, Missing

SECOND = timedelta(seconds=1)


class PersonalAccessTokenContract(ContractBase):
    """A personal access token is found with its user alone, and its access token goes with it."""

    @pytest.fixture
    def personal_access_token(self, save: Save, service_user: ServiceUser) -> PersonalAccessToken:
        """A stored personal access token of ``service_user``."""
        token = a_personal_access_token(service_user)
        save(token)
        return token

    @pytest.fixture
    def foreign_service_user(self, save: Save, other_organization: Organization) -> ServiceUser:
        """A stored service user of ``other_organization``."""
        user = a_service_user(other_organization)
        save(user)
        return user

    @pytest.fixture
    def personal_access_tokens(self, reading: Reading, service_user: ServiceUser) -> Fetch[PersonalAccessToken]:
        """The list of the personal access tokens of ``service_user``."""
        return fetching(reading, lambda storage, request: storage.personal_access_tokens.page(service_user.id, request))

    def test_personal_access_tokens_find_returns_what_was_added(
        self, save: Save, reading: Reading, service_user: ServiceUser, now: datetime
    ) -> None:
        token = a_personal_access_token(
            service_user,
            name="Nächtliche Sicherung 株",
            scope=("openid", "urn:b", "urn:a"),
            expires_at=datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
            last_used_at=now + SECOND,
        )
        plain = a_personal_access_token(service_user, scope=())
        save(token, plain)
        with reading() as storage:
            assert storage.personal_access_tokens.find(token.id, service_user.id) == token
            assert storage.personal_access_tokens.find(plain.id, service_user.id) == plain

    def test_personal_access_tokens_find_is_bound_to_the_user(
        self,
        reading: Reading,
        service_user: ServiceUser,
        foreign_service_user: ServiceUser,
        personal_access_token: PersonalAccessToken,
    ) -> None:
        with reading() as storage:
            assert storage.personal_access_tokens.find(personal_access_token.id, foreign_service_user.id) is None
            assert storage.personal_access_tokens.find(an_id(), service_user.id) is None

    def test_personal_access_tokens_a_taken_id_is_refused(
        self, in_transaction: InTransaction, service_user: ServiceUser, personal_access_token: PersonalAccessToken
    ) -> None:
        later = a_personal_access_token(service_user)
        with in_transaction() as storage:
            with pytest.raises(Duplicate):
                storage.personal_access_tokens.add(replace(personal_access_token, name="Thief"))
            storage.personal_access_tokens.add(later)
            assert storage.personal_access_tokens.find(personal_access_token.id, service_user.id) is not None

    def test_personal_access_tokens_a_token_needs_its_user(self, in_transaction: InTransaction) -> None:
        with pytest.raises(Missing), in_transaction() as storage:
            storage.personal_access_tokens.add(a_personal_access_token())

    def test_personal_access_tokens_an_access_token_needs_the_one_that_it_names(
        self, in_transaction: InTransaction, service_user: ServiceUser
    ) -> None:
        with pytest.raises(Missing), in_transaction() as storage:
            storage.tokens.add_access(an_access_token(service_user, personal_access_token_id=an_id()))

    def test_personal_access_tokens_remove_takes_the_access_token_along(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        service_user: ServiceUser,
        personal_access_token: PersonalAccessToken,
    ) -> None:
        other, key = a_personal_access_token(service_user), a_key(service_user)
        gone = an_access_token(service_user, personal_access_token_id=personal_access_token.id)
        kept = [
            an_access_token(service_user, personal_access_token_id=other.id),
            an_access_token(service_user, key_id=key.id),
            an_access_token(service_user),
        ]
        save(other, key, gone, *kept)
        with reading() as storage:
            issued = storage.tokens.find_issued(gone.digest)
            assert issued is not None
            assert issued.token == gone
        with in_transaction() as storage:
            storage.personal_access_tokens.remove(service_user.id, personal_access_token.id)
        with reading() as storage:
            assert storage.personal_access_tokens.page(service_user.id).items == (other,)
            assert storage.tokens.find_access(gone.digest) is None
            assert storage.tokens.find_issued(gone.digest) is None
            assert [storage.tokens.find_access(token.digest) for token in kept] == kept

    def test_personal_access_tokens_remove_is_bound_to_the_user(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        service_user: ServiceUser,
        foreign_service_user: ServiceUser,
        personal_access_token: PersonalAccessToken,
    ) -> None:
        live = an_access_token(service_user, personal_access_token_id=personal_access_token.id)
        save(live)
        pairs = [
            (foreign_service_user.id, personal_access_token.id),
            (service_user.id, an_id()),
            (an_id(), personal_access_token.id),
        ]
        for user_id, token_id in pairs:
            with pytest.raises(Missing), in_transaction() as storage:
                storage.personal_access_tokens.remove(user_id, token_id)
        with reading() as storage:
            assert storage.personal_access_tokens.page(service_user.id).items == (personal_access_token,)
            assert storage.tokens.find_access(live.digest) == live

    def test_personal_access_tokens_go_with_their_user(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        service_user: ServiceUser,
        foreign_service_user: ServiceUser,
        personal_access_token: PersonalAccessToken,
    ) -> None:
        foreign = a_personal_access_token(foreign_service_user)
        live = an_access_token(service_user, personal_access_token_id=personal_access_token.id)
        save(foreign, live)
        with in_transaction() as storage:
            storage.users.remove(service_user.id)
        with reading() as storage:
            assert storage.personal_access_tokens.find(personal_access_token.id, service_user.id) is None
            assert storage.tokens.find_access(live.digest) is None
            assert storage.personal_access_tokens.page(foreign_service_user.id).items == (foreign,)

    def test_personal_access_tokens_touch_moves_forward_alone(
        self, save: Save, in_transaction: InTransaction, reading: Reading, service_user: ServiceUser, now: datetime
    ) -> None:
        fresh, used = a_personal_access_token(service_user), a_personal_access_token(service_user, last_used_at=now)
        untouched = a_personal_access_token(service_user)
        save(fresh, used, untouched)
        for at, expected in ((now - SECOND, now), (now + SECOND, now + SECOND), (now, now + SECOND)):
            with in_transaction() as storage:
                storage.personal_access_tokens.touch({fresh.id: at, used.id: at, an_id(): at})
            with reading() as storage:
                assert storage.personal_access_tokens.find(used.id, service_user.id) == replace(
                    used, last_used_at=expected
                )
        with reading() as storage:
            assert storage.personal_access_tokens.find(fresh.id, service_user.id) == replace(
                fresh, last_used_at=now + SECOND
            )
            assert storage.personal_access_tokens.find(untouched.id, service_user.id) == untouched
        with in_transaction() as storage:
            storage.personal_access_tokens.touch({})

    def test_personal_access_tokens_page_is_newest_first(
        self,
        save: Save,
        personal_access_tokens: Fetch[PersonalAccessToken],
        service_user: ServiceUser,
        foreign_service_user: ServiceUser,
        now: datetime,
    ) -> None:
        ordered = [a_personal_access_token(service_user, created_at=now - timedelta(days=age)) for age in range(5)]
        save(*reversed(ordered), a_personal_access_token(foreign_service_user))
        check_order(personal_access_tokens, ordered)

    def test_personal_access_tokens_page_in_the_same_second(
        self, save: Save, personal_access_tokens: Fetch[PersonalAccessToken], service_user: ServiceUser
    ) -> None:
        rows = [a_personal_access_token(service_user) for _ in range(5)]
        save(*rows)
        check_ties(personal_access_tokens, rows)

    def test_personal_access_tokens_page_while_rows_come_and_go(
        self,
        save: Save,
        in_transaction: InTransaction,
        personal_access_tokens: Fetch[PersonalAccessToken],
        service_user: ServiceUser,
        now: datetime,
    ) -> None:
        rows = [a_personal_access_token(service_user, created_at=now - age * SECOND) for age in range(7)]
        save(*rows[::2])
        check_insertion(personal_access_tokens, lambda: save(*rows[1::2]), rows[::2])

        def remove(token: PersonalAccessToken) -> None:
            with in_transaction() as storage:
                storage.personal_access_tokens.remove(service_user.id, token.id)

        check_removal(personal_access_tokens, remove, rows)

    def test_personal_access_tokens_expiring_is_exact_to_the_second_and_soonest_first(
        self,
        save: Save,
        reading: Reading,
        service_user: ServiceUser,
        foreign_service_user: ServiceUser,
        now: datetime,
    ) -> None:
        after, until = now + timedelta(days=1), now + timedelta(days=2)
        at_after, at_until = (a_personal_access_token(service_user, expires_at=at) for at in (after, until))
        first = a_personal_access_token(foreign_service_user, expires_at=after + SECOND)
        last = a_personal_access_token(service_user, expires_at=until + SECOND)
        save(last, at_until, first, at_after)
        with reading() as storage:
            store = storage.personal_access_tokens
            assert store.expiring(after, until, 10) == (first, at_until)
            assert store.expiring(after, until, 1) == (first,), "never more than the limit"
            own = service_user.organization_id
            assert store.expiring(after, until, 10, organization_id=own) == (at_until,)
            assert store.expiring(after, until, 1, organization_id=own) == (at_until,)
            assert store.expiring(after, until, 10, organization_id=an_id()) == ()
            assert store.expiring(after, until, 10, organization_id="") == ()
