"""What is demanded of the store of credentials."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.service_user_keys import KeySummary, ServiceUserKey
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.users import ServiceUser, Subject
from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import (
    NOW,
    a_key,
    a_personal_access_token,
    a_service_user,
    a_service_user_secret,
    an_access_token,
    an_id,
)
from identity.storage.errors import Missing

SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)
MAKE: dict[Any, Any] = {
    ServiceUserKey: a_key,
    ServiceUserSecret: a_service_user_secret,
    PersonalAccessToken: a_personal_access_token,
}


class CredentialContract(ContractBase):
    """A credential is found with its user alone, and with all that decides whether the user may act."""

    @pytest.fixture
    def stranger(self, on: On) -> ServiceUser:
        """A stored service user of ``other_organization``."""
        return on.saved(a_service_user(on.other_organization))

    @pytest.mark.parametrize("kind", MAKE)
    def test_credentials_are_bound_to_their_user(self, on: On, stranger: ServiceUser, kind: type[Any]) -> None:
        mine, theirs = on.saved(MAKE[kind](on.service_user)), on.saved(MAKE[kind](stranger))
        live = on.saved(an_access_token(on.service_user))
        for user_id, id_ in ((stranger.id, mine.id), (on.service_user.id, an_id()), (an_id(), mine.id)):
            assert on.read.credentials.find(kind, id_, user_id) is None
            with pytest.raises(Missing):
                on.write.credentials.remove(kind, user_id, id_)
        assert on.left(mine, theirs, live) == [mine, theirs, live]
        for one in (mine, theirs):
            assert on.read.credentials.page(kind, one.user_id).items == (one,)

    @pytest.mark.parametrize("kind", MAKE)
    def test_credentials_last_use_moves_forward_alone(self, on: On, kind: type[Any]) -> None:
        fresh, used, untouched = (MAKE[kind](on.service_user, last_used_at=at) for at in (None, NOW, None))
        on.save(fresh, used, untouched)
        for at, expected in ((NOW - SECOND, NOW), (NOW + SECOND, NOW + SECOND), (NOW, NOW + SECOND)):
            on.write.credentials.touch(kind, {fresh.id: at, used.id: at, an_id(): at})
            assert on.stored(used) == replace(used, last_used_at=expected)
        on.write.credentials.touch(kind, {})
        assert on.stored(fresh) == replace(fresh, last_used_at=NOW + SECOND)
        assert on.stored(untouched) == untouched

    @pytest.mark.parametrize("kind", [ServiceUserKey, PersonalAccessToken])
    def test_credentials_expiring_is_exact_to_the_second_and_soonest_first(
        self, on: On, stranger: ServiceUser, kind: type[Any]
    ) -> None:
        after, until = NOW + DAY, NOW + 2 * DAY
        moments = ((stranger, after + SECOND), (on.service_user, until), (on.service_user, after))
        first, at_until, at_after = (MAKE[kind](user, expires_at=at) for user, at in moments)
        on.save(MAKE[kind](on.service_user, expires_at=until + SECOND), at_until, first, at_after)
        expiring = partial(on.read.credentials.expiring, kind, after, until)
        assert expiring(10) == (first, at_until)
        assert expiring(1) == (first,), "never more than the limit"
        for limit in (1, 10):
            assert expiring(limit, organization_id=on.service_user.organization_id) == (at_until,)
            assert expiring(limit, organization_id=stranger.organization_id) == (first,)
        assert [expiring(10, organization_id=unknown) for unknown in (an_id(), "")] == [(), ()]

    def test_credentials_find_signer_is_bound_to_the_user_and_shows_what_is_deactivated(
        self, on: On, stranger: ServiceUser
    ) -> None:
        user, organization = on.service_user, on.organization
        key = on.saved(a_key(user))
        assert on.read.credentials.find_signer(key.id, user.id) == (key, Subject(user, organization))
        for key_id, user_id in ((key.id, stranger.id), (an_id(), user.id), (key.id, an_id())):
            assert on.read.credentials.find_signer(key_id, user_id) is None
        idle, closed = replace(user, active=False, version=2), replace(organization, active=False, version=2)
        on.write.users.update(idle)
        assert on.read.credentials.find_signer(key.id, user.id) == (key, Subject(idle, organization))
        on.write.organizations.update(closed)
        assert on.read.credentials.find_signer(key.id, user.id) == (key, Subject(idle, closed))
        on.write.credentials.remove(ServiceUserKey, user.id, key.id)
        assert on.read.credentials.find_signer(key.id, user.id) is None

    def test_credentials_key_summaries(self, on: On, stranger: ServiceUser) -> None:
        idle = a_service_user(on.organization)
        on.save(
            idle,
            a_key(on.service_user, expires_at=NOW, last_used_at=NOW - DAY),
            a_key(on.service_user, expires_at=NOW + 2 * DAY, last_used_at=NOW - 2 * DAY),
            a_key(on.service_user, expires_at=NOW + DAY),
            a_key(stranger, expires_at=NOW - DAY),
            a_key(stranger, expires_at=NOW),
        )
        found = on.read.credentials.key_summaries([on.service_user.id, stranger.id, idle.id, an_id()], NOW)
        assert on.read.credentials.key_summaries((), NOW) == {}
        assert found == {
            on.service_user.id: KeySummary(live=2, next_expiry=NOW + DAY, last_used_at=NOW - DAY),
            stranger.id: KeySummary(live=0, next_expiry=NOW, last_used_at=None),
        }

    def test_credentials_secrets_are_oldest_first_also_with_their_holder(self, on: On, stranger: ServiceUser) -> None:
        user, organization = on.service_user, on.organization
        older = a_service_user_secret(user, digest=bytes(range(32)), created_at=NOW - DAY)
        twins = sorted((a_service_user_secret(user) for _ in range(3)), key=lambda secret: secret.id)
        foreign = a_service_user_secret(stranger)
        on.save(*reversed(twins), foreign, older)
        assert on.read.credentials.secrets(user.id) == (older, *twins)
        assert on.read.credentials.secrets(stranger.id) == (foreign,)
        assert on.read.credentials.secrets(an_id()) == ()
        assert on.read.credentials.find_holder(user.id) == (Subject(user, organization), (older, *twins))
        idle, closed = replace(user, active=False, version=2), replace(organization, active=False, version=2)
        with on.writing() as storage:
            storage.users.update(idle)
            storage.organizations.update(closed)
            for secret in twins:
                storage.credentials.remove(ServiceUserSecret, user.id, secret.id)
        assert on.read.credentials.find_holder(user.id) == (Subject(idle, closed), (older,))

    def test_credentials_find_holder_knows_service_users_with_a_secret_alone(self, on: On) -> None:
        on.save(a_service_user_secret(on.human_user))
        found = [on.read.credentials.find_holder(id_) for id_ in (on.service_user.id, on.human_user.id, an_id())]
        assert found == [None] * 3
