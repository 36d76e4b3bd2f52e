"""What is demanded of the service user secret store."""

from dataclasses import replace
from datetime import timedelta

import pytest

from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.users import ServiceUser, Subject
from identity.storage.contract.base import ContractBase, On, there
from identity.storage.contract.factories import (
    NOW,
    a_key,
    a_service_user,
    a_service_user_secret,
    an_access_token,
    an_id,
)
from identity.storage.errors import Duplicate, Missing


class ServiceUserSecretContract(ContractBase):
    """Secrets are found with their user, and with all that decides whether the user may act."""

    @pytest.fixture
    def service_user_secret(self, on: On) -> ServiceUserSecret:
        """A stored secret of ``service_user``."""
        return on.saved(a_service_user_secret(on.service_user))

    @pytest.fixture
    def other_service_user(self, on: On) -> ServiceUser:
        """A stored service user of ``other_organization``."""
        return on.saved(a_service_user(on.other_organization))

    def test_service_user_secrets_of_user_are_oldest_first(self, on: On, other_service_user: ServiceUser) -> None:
        older = a_service_user_secret(on.service_user, digest=bytes(range(32)), created_at=NOW - timedelta(days=1))
        twins = sorted((a_service_user_secret(on.service_user) for _ in range(3)), key=lambda secret: secret.id)
        foreign = a_service_user_secret(other_service_user)
        on.save(*reversed(twins), foreign, older)
        assert on.read.credentials.secrets(on.service_user.id) == (older, *twins)
        assert on.read.credentials.secrets(other_service_user.id) == (foreign,)
        assert on.read.credentials.secrets(an_id()) == ()

    def test_service_user_secrets_a_taken_id_is_refused(
        self, on: On, service_user_secret: ServiceUserSecret, other_service_user: ServiceUser
    ) -> None:
        service_user = on.service_user
        later = a_service_user_secret(other_service_user)
        with on.writing() as storage:
            with pytest.raises(Duplicate):
                storage.credentials.add(a_service_user_secret(other_service_user, id=service_user_secret.id))
            storage.credentials.add(later)
        assert on.read.credentials.secrets(service_user.id) == (service_user_secret,)
        assert on.read.credentials.secrets(other_service_user.id) == (later,)

    def test_service_user_secrets_find_holder_returns_user_organization_and_secrets(
        self, on: On, service_user_secret: ServiceUserSecret, other_service_user: ServiceUser
    ) -> None:
        holder = on.read.credentials.find_holder(on.service_user.id)
        assert holder == (Subject(on.service_user, on.organization), (service_user_secret,))
        older = a_service_user_secret(on.service_user, created_at=NOW - timedelta(days=1))
        on.save(older, a_service_user_secret(other_service_user))
        holder = on.read.credentials.find_holder(on.service_user.id)
        assert holder == (Subject(on.service_user, on.organization), (older, service_user_secret))

    def test_service_user_secrets_find_holder_knows_service_users_with_a_secret_alone(self, on: On) -> None:
        service_user = on.service_user
        on.save(a_service_user_secret(on.human_user))
        assert on.read.credentials.find_holder(service_user.id) is None
        assert on.read.credentials.find_holder(on.human_user.id) is None
        assert on.read.credentials.find_holder(an_id()) is None

    def test_service_user_secrets_find_holder_shows_what_is_deactivated(
        self, on: On, service_user_secret: ServiceUserSecret
    ) -> None:
        idle = replace(on.service_user, active=False, version=2)
        closed = replace(on.organization, active=False, version=2)
        with on.writing() as storage:
            storage.users.update(idle)
            storage.organizations.update(closed)
        holder = on.read.credentials.find_holder(on.service_user.id)
        assert holder == (Subject(idle, closed), (service_user_secret,))

    def test_service_user_secrets_remove_takes_the_tokens_that_it_obtained_along(
        self, on: On, service_user_secret: ServiceUserSecret
    ) -> None:
        service_user = on.service_user
        other, key = a_service_user_secret(service_user), a_key(service_user)
        gone = an_access_token(service_user, secret_id=service_user_secret.id)
        kept = [
            an_access_token(service_user, secret_id=other.id),
            an_access_token(service_user, key_id=key.id),
            an_access_token(service_user),
        ]
        on.save(other, key, gone, *kept)
        on.write.credentials.remove(ServiceUserSecret, service_user.id, service_user_secret.id)
        assert on.read.credentials.secrets(service_user.id) == (other,)
        assert on.read.tokens.find_access(gone.digest) is None
        assert on.read.tokens.find_issued(gone.digest) is None
        assert [on.read.tokens.find_access(token.digest) for token in kept] == kept
        on.write.credentials.remove(ServiceUserSecret, service_user.id, other.id)
        assert on.read.credentials.find_holder(service_user.id) is None

    def test_service_user_secrets_remove_is_bound_to_the_user(
        self, on: On, service_user_secret: ServiceUserSecret, other_service_user: ServiceUser
    ) -> None:
        token = on.saved(an_access_token(on.service_user, secret_id=service_user_secret.id))
        pairs = [
            (other_service_user.id, service_user_secret.id),
            (on.service_user.id, an_id()),
            (an_id(), service_user_secret.id),
        ]
        for user_id, secret_id in pairs:
            with pytest.raises(Missing):
                on.write.credentials.remove(ServiceUserSecret, user_id, secret_id)
        assert on.read.credentials.secrets(on.service_user.id) == (service_user_secret,)
        assert on.read.tokens.find_access(token.digest) == token

    def test_service_user_secrets_go_with_their_user(
        self, on: On, service_user_secret: ServiceUserSecret, other_service_user: ServiceUser
    ) -> None:
        other_organization = on.other_organization
        foreign = a_service_user_secret(other_service_user)
        tokens = [
            an_access_token(on.service_user, secret_id=service_user_secret.id),
            an_access_token(other_service_user, secret_id=foreign.id),
        ]
        on.save(foreign, *tokens)
        on.write.users.remove(on.service_user.id)
        assert on.read.credentials.secrets(on.service_user.id) == ()
        assert on.read.credentials.find_holder(on.service_user.id) is None
        assert on.read.credentials.secrets(other_service_user.id) == (foreign,)
        assert [on.read.tokens.find_access(token.digest) for token in tokens] == [None, tokens[1]]
        on.write.organizations.remove(other_organization.id)
        assert on.read.credentials.secrets(other_service_user.id) == ()

    def test_service_user_secrets_touch_moves_forward_alone(
        self, on: On, service_user_secret: ServiceUserSecret
    ) -> None:
        used = on.saved(a_service_user_secret(on.service_user, last_used_at=NOW, created_at=NOW - timedelta(days=1)))
        second = timedelta(seconds=1)
        for at, expected in ((NOW - second, NOW), (NOW + second, NOW + second), (NOW, NOW + second)):
            on.write.credentials.touch(ServiceUserSecret, {used.id: at, an_id(): at})
            touched = (replace(used, last_used_at=expected), service_user_secret)
            assert on.read.credentials.secrets(on.service_user.id) == touched
            holder = there(on.read.credentials.find_holder(on.service_user.id))
            assert holder[1] == touched
