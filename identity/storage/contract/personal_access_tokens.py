"""What is demanded of the personal access token store."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.users import ServiceUser
from identity.storage.contract.base import ContractBase, On, there
from identity.storage.contract.factories import (
    NOW,
    a_key,
    a_personal_access_token,
    a_service_user,
    an_access_token,
    an_id,
)
from identity.storage.errors import Duplicate, Missing

SECOND = timedelta(seconds=1)


class PersonalAccessTokenContract(ContractBase):
    """A personal access token is found with its user alone, and its access token goes with it."""

    @pytest.fixture
    def personal_access_token(self, on: On) -> PersonalAccessToken:
        """A stored personal access token of ``service_user``."""
        return on.saved(a_personal_access_token(on.service_user))

    @pytest.fixture
    def foreign_service_user(self, on: On) -> ServiceUser:
        """A stored service user of ``other_organization``."""
        return on.saved(a_service_user(on.other_organization))

    def test_personal_access_tokens_find_returns_what_was_added(self, on: On) -> None:
        token = a_personal_access_token(
            on.service_user,
            name="Nächtliche Sicherung 株",
            scope=("openid", "urn:b", "urn:a"),
            expires_at=datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
            last_used_at=NOW + SECOND,
        )
        plain = a_personal_access_token(on.service_user, scope=())
        on.save(token, plain)
        assert on.read.credentials.find(PersonalAccessToken, token.id, on.service_user.id) == token
        assert on.read.credentials.find(PersonalAccessToken, plain.id, on.service_user.id) == plain

    def test_personal_access_tokens_find_is_bound_to_the_user(
        self, on: On, foreign_service_user: ServiceUser, personal_access_token: PersonalAccessToken
    ) -> None:
        service_user = on.service_user
        assert on.read.credentials.find(PersonalAccessToken, personal_access_token.id, foreign_service_user.id) is None
        assert on.read.credentials.find(PersonalAccessToken, an_id(), service_user.id) is None

    def test_personal_access_tokens_a_taken_id_is_refused(
        self, on: On, personal_access_token: PersonalAccessToken
    ) -> None:
        later = a_personal_access_token(on.service_user)
        with on.writing() as storage:
            with pytest.raises(Duplicate):
                storage.credentials.add(replace(personal_access_token, name="Thief"))
            storage.credentials.add(later)
            assert (
                storage.credentials.find(PersonalAccessToken, personal_access_token.id, on.service_user.id) is not None
            )

    def test_personal_access_tokens_an_access_token_needs_the_one_that_it_names(self, on: On) -> None:
        with pytest.raises(Missing):
            on.write.tokens.add_access(an_access_token(on.service_user, personal_access_token_id=an_id()))

    def test_personal_access_tokens_remove_takes_the_access_token_along(
        self, on: On, personal_access_token: PersonalAccessToken
    ) -> None:
        service_user = on.service_user
        other, key = a_personal_access_token(service_user), a_key(service_user)
        gone = an_access_token(service_user, personal_access_token_id=personal_access_token.id)
        kept = [
            an_access_token(service_user, personal_access_token_id=other.id),
            an_access_token(service_user, key_id=key.id),
            an_access_token(service_user),
        ]
        on.save(other, key, gone, *kept)
        issued = there(on.read.tokens.find_issued(gone.digest))
        assert issued.token == gone
        on.write.credentials.remove(PersonalAccessToken, service_user.id, personal_access_token.id)
        assert on.read.credentials.page(PersonalAccessToken, service_user.id).items == (other,)
        assert on.read.tokens.find_access(gone.digest) is None
        assert on.read.tokens.find_issued(gone.digest) is None
        assert [on.read.tokens.find_access(token.digest) for token in kept] == kept

    def test_personal_access_tokens_remove_is_bound_to_the_user(
        self, on: On, foreign_service_user: ServiceUser, personal_access_token: PersonalAccessToken
    ) -> None:
        live = on.saved(an_access_token(on.service_user, personal_access_token_id=personal_access_token.id))
        pairs = [
            (foreign_service_user.id, personal_access_token.id),
            (on.service_user.id, an_id()),
            (an_id(), personal_access_token.id),
        ]
        for user_id, token_id in pairs:
            with pytest.raises(Missing):
                on.write.credentials.remove(PersonalAccessToken, user_id, token_id)
        assert on.read.credentials.page(PersonalAccessToken, on.service_user.id).items == (personal_access_token,)
        assert on.read.tokens.find_access(live.digest) == live

    def test_personal_access_tokens_go_with_their_user(
        self, on: On, foreign_service_user: ServiceUser, personal_access_token: PersonalAccessToken
    ) -> None:
        foreign = a_personal_access_token(foreign_service_user)
        live = an_access_token(on.service_user, personal_access_token_id=personal_access_token.id)
        on.save(foreign, live)
        on.write.users.remove(on.service_user.id)
        assert on.read.credentials.find(PersonalAccessToken, personal_access_token.id, on.service_user.id) is None
        assert on.read.tokens.find_access(live.digest) is None
        assert on.read.credentials.page(PersonalAccessToken, foreign_service_user.id).items == (foreign,)

    def test_personal_access_tokens_touch_moves_forward_alone(self, on: On) -> None:
        fresh, used = (
            a_personal_access_token(on.service_user),
            a_personal_access_token(on.service_user, last_used_at=NOW),
        )
        untouched = a_personal_access_token(on.service_user)
        on.save(fresh, used, untouched)
        for at, expected in ((NOW - SECOND, NOW), (NOW + SECOND, NOW + SECOND), (NOW, NOW + SECOND)):
            on.write.credentials.touch(PersonalAccessToken, {fresh.id: at, used.id: at, an_id(): at})
            assert on.read.credentials.find(PersonalAccessToken, used.id, on.service_user.id) == replace(
                used, last_used_at=expected
            )
        assert on.read.credentials.find(PersonalAccessToken, fresh.id, on.service_user.id) == replace(
            fresh, last_used_at=NOW + SECOND
        )
        assert on.read.credentials.find(PersonalAccessToken, untouched.id, on.service_user.id) == untouched
        on.write.credentials.touch(PersonalAccessToken, {})

    def test_personal_access_tokens_expiring_is_exact_to_the_second_and_soonest_first(
        self, on: On, foreign_service_user: ServiceUser
    ) -> None:
        after, until = NOW + timedelta(days=1), NOW + timedelta(days=2)
        at_after, at_until = (a_personal_access_token(on.service_user, expires_at=at) for at in (after, until))
        first = a_personal_access_token(foreign_service_user, expires_at=after + SECOND)
        last = a_personal_access_token(on.service_user, expires_at=until + SECOND)
        on.save(last, at_until, first, at_after)
        expiring = partial(on.read.credentials.expiring, PersonalAccessToken)
        assert expiring(after, until, 10) == (first, at_until)
        assert expiring(after, until, 1) == (first,), "never more than the limit"
        own = on.service_user.organization_id
        assert expiring(after, until, 10, organization_id=own) == (at_until,)
        assert expiring(after, until, 1, organization_id=own) == (at_until,)
        assert expiring(after, until, 10, organization_id=an_id()) == ()
        assert expiring(after, until, 10, organization_id="") == ()
