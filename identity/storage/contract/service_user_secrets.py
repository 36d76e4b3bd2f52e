"""What is demanded of the service user secret store."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from identity.domain.organizations import Organization
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.users import HumanUser, ServiceUser, Subject
from identity.storage.contract.base import ContractBase, InTransaction, Reading, Save
from identity.storage.contract.factories import a_key, a_service_user, a_service_user_secret, an_access_token, an_id
from identity.storage.errors import Duplicate, Missing


class ServiceUserSecretContract(ContractBase):
    """Secrets are found with their user, and with all that decides whether the user may act."""

    @pytest.fixture
    def service_user_secret(self, save: Save, service_user: ServiceUser) -> ServiceUserSecret:
        """A stored secret of ``service_user``."""
        secret = a_service_user_secret(service_user)
        save(secret)
        return secret

    @pytest.fixture
    def other_service_user(self, save: Save, other_organization: Organization) -> ServiceUser:
        """A stored service user of ``other_organization``."""
        user = a_service_user(other_organization)
        save(user)
        return user

    def test_service_user_secrets_of_user_are_oldest_first(
        self,
        save: Save,
        reading: Reading,
        service_user: ServiceUser,
        other_service_user: ServiceUser,
        now: datetime,
    ) -> None:
        older = a_service_user_secret(service_user, digest=bytes(range(32)), created_at=now - timedelta(days=1))
        twins = sorted((a_service_user_secret(service_user) for _ in range(3)), key=lambda secret: secret.id)
        foreign = a_service_user_secret(other_service_user)
        save(*reversed(twins), foreign, older)
        with reading() as storage:
            assert storage.service_user_secrets.of_user(service_user.id) == (older, *twins)
            assert storage.service_user_secrets.of_user(other_service_user.id) == (foreign,)
            assert storage.service_user_secrets.of_user(an_id()) == ()

    def test_service_user_secrets_a_taken_id_is_refused(
        self,
        in_transaction: InTransaction,
        reading: Reading,
        service_user: ServiceUser,
        service_user_secret: ServiceUserSecret,
        other_service_user: ServiceUser,
    ) -> None:
        later = a_service_user_secret(other_service_user)
        with in_transaction() as storage:
            with pytest.raises(Duplicate):
                storage.service_user_secrets.add(a_service_user_secret(other_service_user, id=service_user_secret.id))
            storage.service_user_secrets.add(later)
        with reading() as storage:
            assert storage.service_user_secrets.of_user(service_user.id) == (service_user_secret,)
            assert storage.service_user_secrets.of_user(other_service_user.id) == (later,)

    def test_service_user_secrets_a_secret_needs_its_user(self, in_transaction: InTransaction) -> None:
        with pytest.raises(Missing), in_transaction() as storage:
            storage.service_user_secrets.add(a_service_user_secret())

    def test_service_user_secrets_find_holder_returns_user_organization_and_secrets(
        self,
        save: Save,
        reading: Reading,
        service_user: ServiceUser,
        organization: Organization,
        service_user_secret: ServiceUserSecret,
        other_service_user: ServiceUser,
        now: datetime,
    ) -> None:
        with reading() as storage:
            holder = storage.service_user_secrets.find_holder(service_user.id)
        assert holder == (Subject(service_user, organization), (service_user_secret,))
        older = a_service_user_secret(service_user, created_at=now - timedelta(days=1))
        save(older, a_service_user_secret(other_service_user))
        with reading() as storage:
            holder = storage.service_user_secrets.find_holder(service_user.id)
        assert holder == (Subject(service_user, organization), (older, service_user_secret))

    def test_service_user_secrets_find_holder_knows_service_users_with_a_secret_alone(
        self, save: Save, reading: Reading, service_user: ServiceUser, human_user: HumanUser
    ) -> None:
        save(a_service_user_secret(human_user))
        with reading() as storage:
            assert storage.service_user_secrets.find_holder(service_user.id) is None
            assert storage.service_user_secrets.find_holder(human_user.id) is None
            assert storage.service_user_secrets.find_holder(an_id()) is None

    def test_service_user_secrets_find_holder_shows_what_is_deactivated(
        self,
        in_transaction: InTransaction,
        reading: Reading,
        service_user: ServiceUser,
        organization: Organization,
        service_user_secret: ServiceUserSecret,
    ) -> None:
        idle = replace(service_user, active=False, version=2)
        closed = replace(organization, active=False, version=2)
        with in_transaction() as storage:
            storage.users.update(idle)
            storage.organizations.update(closed)
        with reading() as storage:
            holder = storage.service_user_secrets.find_holder(service_user.id)
        assert holder == (Subject(idle, closed), (service_user_secret,))

    def test_service_user_secrets_remove_takes_the_tokens_that_it_obtained_along(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        service_user: ServiceUser,
        service_user_secret: ServiceUserSecret,
    ) -> None:
        other, key = a_service_user_secret(service_user), a_key(service_user)
        gone = an_access_token(service_user, secret_id=service_user_secret.id)
        kept = [
            an_access_token(service_user, secret_id=other.id),
            an_access_token(service_user, key_id=key.id),
            an_access_token(service_user),
        ]
        save(other, key, gone, *kept)
        with in_transaction() as storage:
            storage.service_user_secrets.remove(service_user.id, service_user_secret.id)
        with reading() as storage:
            assert storage.service_user_secrets.of_user(service_user.id) == (other,)
            assert storage.tokens.find_access(gone.digest) is None
            assert storage.tokens.find_issued(gone.digest) is None
            assert [storage.tokens.find_access(token.digest) for token in kept] == kept
        with in_transaction() as storage:
            storage.service_user_secrets.remove(service_user.id, other.id)
        with reading() as storage:
            assert storage.service_user_secrets.find_holder(service_user.id) is None

    def test_service_user_secrets_remove_is_bound_to_the_user(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        service_user: ServiceUser,
        service_user_secret: ServiceUserSecret,
        other_service_user: ServiceUser,
    ) -> None:
        token = an_access_token(service_user, secret_id=service_user_secret.id)
        save(token)
        pairs = [
            (other_service_user.id, service_user_secret.id),
            (service_user.id, an_id()),
            (an_id(), service_user_secret.id),
        ]
        for user_id, secret_id in pairs:
            with pytest.raises(Missing), in_transaction() as storage:
                storage.service_user_secrets.remove(user_id, secret_id)
        with reading() as storage:
            assert storage.service_user_secrets.of_user(service_user.id) == (service_user_secret,)
            assert storage.tokens.find_access(token.digest) == token

    def test_service_user_secrets_go_with_their_user(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        service_user: ServiceUser,
        service_user_secret: ServiceUserSecret,
        other_service_user: ServiceUser,
        other_organization: Organization,
    ) -> None:
        foreign = a_service_user_secret(other_service_user)
        tokens = [
            an_access_token(service_user, secret_id=service_user_secret.id),
            an_access_token(other_service_user, secret_id=foreign.id),
        ]
        save(foreign, *tokens)
        with in_transaction() as storage:
            storage.users.remove(service_user.id)
        with reading() as storage:
            assert storage.service_user_secrets.of_user(service_user.id) == ()
            assert storage.service_user_secrets.find_holder(service_user.id) is None
            assert storage.service_user_secrets.of_user(other_service_user.id) == (foreign,)
            assert [storage.tokens.find_access(token.digest) for token in tokens] == [None, tokens[1]]
        with in_transaction() as storage:
            storage.organizations.remove(other_organization.id)
        with reading() as storage:
            assert storage.service_user_secrets.of_user(other_service_user.id) == ()

    def test_service_user_secrets_touch_moves_forward_alone(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        service_user: ServiceUser,
        service_user_secret: ServiceUserSecret,
        now: datetime,
    ) -> None:
        used = a_service_user_secret(service_user, last_used_at=now, created_at=now - timedelta(days=1))
        save(used)
        second = timedelta(seconds=1)
        for at, expected in ((now - second, now), (now + second, now + second), (now, now + second)):
            with in_transaction() as storage:
                storage.service_user_secrets.touch({used.id: at, an_id(): at})
            with reading() as storage:
                touched = (replace(used, last_used_at=expected), service_user_secret)
                assert storage.service_user_secrets.of_user(service_user.id) == touched
                holder = storage.service_user_secrets.find_holder(service_user.id)
                assert holder is not None
                assert holder[1] == touched
