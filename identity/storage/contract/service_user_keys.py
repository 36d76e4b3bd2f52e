"""What is demanded of the service user key store."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from identity.domain.service_user_keys import KeySummary, ServiceUserKey
from identity.domain.users import ServiceUser, Subject
from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import NOW, a_key, a_service_user, an_access_token, an_id
from identity.storage.errors import Duplicate, Missing


class ServiceUserKeyContract(ContractBase):
    """A key is found together with its user alone, and with all that decides whether the user may act."""

    @pytest.fixture
    def key(self, on: On) -> ServiceUserKey:
        """A stored key of ``service_user``."""
        return on.saved(a_key(on.service_user))

    @pytest.fixture
    def stranger(self, on: On) -> ServiceUser:
        """A stored service user of ``other_organization``."""
        return on.saved(a_service_user(on.other_organization))

    def test_keys_find_returns_what_was_added(self, on: On) -> None:
        key = on.saved(
            a_key(
                on.service_user,
                public_key=bytes(range(256)),
                expires_at=datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
                last_used_at=datetime(2026, 3, 1, 0, 0, 1, tzinfo=UTC),
            )
        )
        assert on.read.credentials.find(ServiceUserKey, key.id, on.service_user.id) == key

    def test_keys_find_is_bound_to_the_user(self, on: On, key: ServiceUserKey, stranger: ServiceUser) -> None:
        service_user = on.service_user
        assert on.read.credentials.find(ServiceUserKey, key.id, stranger.id) is None
        assert on.read.credentials.find(ServiceUserKey, an_id(), service_user.id) is None

    def test_keys_a_taken_id_is_refused(self, on: On, key: ServiceUserKey, stranger: ServiceUser) -> None:
        service_user = on.service_user
        with pytest.raises(Duplicate):
            on.write.credentials.add(a_key(stranger, id=key.id))
        assert on.read.credentials.find(ServiceUserKey, key.id, service_user.id) == key

    def test_keys_find_signer_returns_key_user_and_organization(self, on: On, key: ServiceUserKey) -> None:
        signer = on.read.credentials.find_signer(key.id, on.service_user.id)
        assert signer == (key, Subject(on.service_user, on.organization))

    def test_keys_find_signer_is_bound_to_the_user(self, on: On, key: ServiceUserKey, stranger: ServiceUser) -> None:
        service_user = on.service_user
        assert on.read.credentials.find_signer(key.id, stranger.id) is None
        assert on.read.credentials.find_signer(an_id(), service_user.id) is None
        assert on.read.credentials.find_signer(key.id, an_id()) is None

    def test_keys_find_signer_shows_what_is_deactivated(self, on: On, key: ServiceUserKey) -> None:
        idle = replace(on.service_user, active=False, version=2)
        closed = replace(on.organization, active=False, version=2)
        on.write.users.update(idle)
        signer = on.read.credentials.find_signer(key.id, on.service_user.id)
        assert signer == (key, Subject(idle, on.organization))
        on.write.organizations.update(closed)
        signer = on.read.credentials.find_signer(key.id, on.service_user.id)
        assert signer == (key, Subject(idle, closed))

    def test_keys_find_signer_of_a_removed_key(self, on: On, key: ServiceUserKey) -> None:
        service_user = on.service_user
        on.write.credentials.remove(ServiceUserKey, key.user_id, key.id)
        assert on.read.credentials.find_signer(key.id, service_user.id) is None

    def test_keys_touch(self, on: On, key: ServiceUserKey) -> None:
        other = on.saved(a_key(on.service_user))
        later = NOW + timedelta(hours=1)
        on.write.credentials.touch(ServiceUserKey, {key.id: later})
        assert on.read.credentials.find(ServiceUserKey, key.id, on.service_user.id) == replace(key, last_used_at=later)
        assert on.read.credentials.find(ServiceUserKey, other.id, on.service_user.id) == other

    def test_keys_touch_of_a_key_that_is_gone(self, on: On) -> None:
        on.write.credentials.touch(ServiceUserKey, {an_id(): NOW})

    def test_keys_remove(self, on: On, key: ServiceUserKey) -> None:
        other = a_key(on.service_user)
        tokens = [an_access_token(on.service_user, key_id=one.id) for one in (key, other)]
        on.save(other, *tokens)
        on.write.credentials.remove(ServiceUserKey, key.user_id, key.id)
        assert on.read.tokens.find_access(tokens[0].digest) is None
        assert on.read.tokens.find_access(tokens[1].digest) == tokens[1]
        assert on.read.credentials.find(ServiceUserKey, key.id, on.service_user.id) is None
        assert on.read.credentials.find(ServiceUserKey, other.id, on.service_user.id) == other

    def test_keys_remove_of_an_unknown_key(self, on: On) -> None:
        with pytest.raises(Missing):
            on.write.credentials.remove(ServiceUserKey, an_id(), an_id())

    def test_keys_expiring_is_exact_to_the_second_and_soonest_first(self, on: On, stranger: ServiceUser) -> None:
        after, until, second = NOW + timedelta(days=1), NOW + timedelta(days=2), timedelta(seconds=1)
        at_after, at_until = a_key(on.service_user, expires_at=after), a_key(on.service_user, expires_at=until)
        first, last = a_key(stranger, expires_at=after + second), a_key(on.service_user, expires_at=until + second)
        on.save(last, at_until, first, at_after)
        assert on.read.credentials.expiring(ServiceUserKey, after, until, 10) == (first, at_until)
        assert on.read.credentials.expiring(ServiceUserKey, after, until, 1) == (first,), "never more than the limit"
        assert on.read.credentials.expiring(ServiceUserKey, until + second, until + 2 * second, 10) == ()

    def test_keys_expiring_of_an_organization(self, on: On, stranger: ServiceUser) -> None:
        own, foreign = a_key(on.service_user), a_key(stranger)
        on.save(foreign, own)
        until = own.expires_at
        expiring = partial(on.read.credentials.expiring, ServiceUserKey)
        assert expiring(NOW, until, 10, organization_id=on.service_user.organization_id) == (own,)
        assert expiring(NOW, until, 1, organization_id=stranger.organization_id) == (foreign,)
        assert expiring(NOW, until, 10, organization_id=an_id()) == ()
        assert expiring(NOW, until, 10, organization_id="") == ()

    def test_keys_summaries(self, on: On, stranger: ServiceUser) -> None:
        idle, day = a_service_user(id=an_id(), organization_id=on.service_user.organization_id), timedelta(days=1)
        on.save(
            idle,
            a_key(on.service_user, expires_at=NOW, last_used_at=NOW - day),
            a_key(on.service_user, expires_at=NOW + 2 * day, last_used_at=NOW - 2 * day),
            a_key(on.service_user, expires_at=NOW + day),
            a_key(stranger, expires_at=NOW - day),
            a_key(stranger, expires_at=NOW),
        )
        found = on.read.credentials.key_summaries([on.service_user.id, stranger.id, idle.id, an_id()], NOW)
        assert on.read.credentials.key_summaries((), NOW) == {}
        assert found == {
            on.service_user.id: KeySummary(live=2, next_expiry=NOW + day, last_used_at=NOW - day),
            stranger.id: KeySummary(live=0, next_expiry=NOW, last_used_at=None),
        }
