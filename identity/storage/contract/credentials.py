"""Contract of the credential store."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from identity.domain.federated_credentials import FederatedCredential
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.service_user_keys import KeySummary, ServiceUserKey
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.users import ServiceUser, Subject
from identity.storage.contract import factories as make
from identity.storage.contract.factories import DAY, NOW, SECOND, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness
from identity.storage.errors import RowNotFound

FACTORIES: dict[Any, Any] = {
    ServiceUserKey: make.service_user_key,
    ServiceUserSecret: make.service_user_secret,
    PersonalAccessToken: make.personal_access_token,
    FederatedCredential: make.federated_credential,
}


class CredentialContract(ContractBase):
    """A credential is found only for its user, with everything needed to authorize the user."""

    @pytest.fixture
    def stranger(self, on: StorageHarness) -> ServiceUser:
        return on.store_value(make.service_user(on.other_organization))

    @pytest.mark.parametrize("kind", FACTORIES)
    def test_credentials_are_bound_to_their_user(
        self, on: StorageHarness, stranger: ServiceUser, kind: type[Any]
    ) -> None:
        mine, foreign = on.store_value(FACTORIES[kind](on.service_user)), on.store_value(FACTORIES[kind](stranger))
        live = on.store_value(make.access_token(on.service_user))
        for user_id, id_ in ((stranger.id, mine.id), (on.service_user.id, make_id()), (make_id(), mine.id)):
            assert on.read.credentials.find(kind, id_, user_id) is None
            with pytest.raises(RowNotFound):
                on.write.credentials.delete(kind, user_id, id_)
        assert on.unchanged(mine, foreign, live) == [mine, foreign, live]
        for item in (mine, foreign):
            assert on.read.credentials.page(kind, item.user_id).items == (item,)

    @pytest.mark.parametrize("kind", FACTORIES)
    def test_credentials_last_use_moves_forward_alone(self, on: StorageHarness, kind: type[Any]) -> None:
        fresh, used, untouched = (FACTORIES[kind](on.service_user, last_used_at=at) for at in (None, NOW, None))
        on.store(fresh, used, untouched)
        for at, expected in ((NOW - SECOND, NOW), (NOW + SECOND, NOW + SECOND), (NOW, NOW + SECOND)):
            on.write.credentials.update_last_used(kind, {fresh.id: at, used.id: at, make_id(): at})
            assert on.find_stored(used) == replace(used, last_used_at=expected)
        on.write.credentials.update_last_used(kind, {})
        assert on.find_stored(fresh) == replace(fresh, last_used_at=NOW + SECOND)
        assert on.find_stored(untouched) == untouched

    @pytest.mark.parametrize("kind", [ServiceUserKey, PersonalAccessToken])
    def test_credentials_expiring_is_exact_to_the_second_and_soonest_first(
        self, on: StorageHarness, stranger: ServiceUser, kind: type[Any]
    ) -> None:
        after, until = NOW + DAY, NOW + 2 * DAY
        moments = ((stranger, after + SECOND), (on.service_user, until), (on.service_user, after))
        first, at_until, at_after = (FACTORIES[kind](user, expires_at=at) for user, at in moments)
        on.store(FACTORIES[kind](on.service_user, expires_at=until + SECOND), at_until, first, at_after)
        expiring = partial(on.read.credentials.list_expiring, kind, after, until)
        assert expiring(10) == (first, at_until)
        assert expiring(1) == (first,), "never more than the limit"
        for limit in (1, 10):
            assert expiring(limit, organization_id=on.service_user.organization_id) == (at_until,)
            assert expiring(limit, organization_id=stranger.organization_id) == (first,)
        assert [expiring(10, organization_id=unknown) for unknown in (make_id(), "")] == [(), ()]

    def test_credentials_find_signer_is_bound_to_the_user_and_shows_what_is_deactivated(
        self, on: StorageHarness, stranger: ServiceUser
    ) -> None:
        user, organization = on.service_user, on.organization
        key = on.store_value(make.service_user_key(user))
        assert on.read.credentials.find_key_with_subject(key.id, user.id) == (key, Subject(user, organization))
        for key_id, user_id in ((key.id, stranger.id), (make_id(), user.id), (key.id, make_id())):
            assert on.read.credentials.find_key_with_subject(key_id, user_id) is None
        idle, closed = replace(user, active=False, version=2), replace(organization, active=False, version=2)
        on.write.users.update(idle)
        assert on.read.credentials.find_key_with_subject(key.id, user.id) == (key, Subject(idle, organization))
        on.write.organizations.update(closed)
        assert on.read.credentials.find_key_with_subject(key.id, user.id) == (key, Subject(idle, closed))
        on.write.credentials.delete(ServiceUserKey, user.id, key.id)
        assert on.read.credentials.find_key_with_subject(key.id, user.id) is None

    def test_credentials_key_summaries(self, on: StorageHarness, stranger: ServiceUser) -> None:
        idle = make.service_user(on.organization)
        on.store(
            idle,
            make.service_user_key(on.service_user, expires_at=NOW, last_used_at=NOW - DAY),
            make.service_user_key(on.service_user, expires_at=NOW + 2 * DAY, last_used_at=NOW - 2 * DAY),
            make.service_user_key(on.service_user, expires_at=NOW + DAY),
            make.service_user_key(stranger, expires_at=NOW - DAY),
            make.service_user_key(stranger, expires_at=NOW),
        )
        found = on.read.credentials.key_summaries([on.service_user.id, stranger.id, idle.id, make_id()], NOW)
        assert on.read.credentials.key_summaries((), NOW) == {}
        assert found == {
            on.service_user.id: KeySummary(live_count=2, next_expires_at=NOW + DAY, last_used_at=NOW - DAY),
            stranger.id: KeySummary(live_count=0, next_expires_at=NOW, last_used_at=None),
        }

    def test_credentials_secrets_are_oldest_first_also_with_their_holder(
        self, on: StorageHarness, stranger: ServiceUser
    ) -> None:
        user, organization = on.service_user, on.organization
        older = make.service_user_secret(user, digest=bytes(range(32)), created_at=NOW - DAY)
        twins = sorted((make.service_user_secret(user) for _ in range(3)), key=lambda secret: secret.id)
        foreign = make.service_user_secret(stranger)
        on.store(*reversed(twins), foreign, older)
        assert on.read.credentials.list_secrets(user.id) == (older, *twins)
        assert on.read.credentials.list_secrets(stranger.id) == (foreign,)
        assert on.read.credentials.list_secrets(make_id()) == ()
        assert on.read.credentials.find_subject_with_secrets(user.id) == (Subject(user, organization), (older, *twins))
        idle, closed = replace(user, active=False, version=2), replace(organization, active=False, version=2)
        with on.transaction() as storage:
            storage.users.update(idle)
            storage.organizations.update(closed)
            for secret in twins:
                storage.credentials.delete(ServiceUserSecret, user.id, secret.id)
        assert on.read.credentials.find_subject_with_secrets(user.id) == (Subject(idle, closed), (older,))

    def test_credentials_federated_are_oldest_first_also_with_their_service_user(
        self, on: StorageHarness, stranger: ServiceUser
    ) -> None:
        user, store = on.service_user, on.read.credentials
        older = make.federated_credential(user, created_at=NOW - DAY)
        newer, foreign = make.federated_credential(user), make.federated_credential(stranger)
        on.store(newer, foreign, older, make.federated_credential(on.human_user))
        assert store.list_federated_credentials(user.id) == (older, newer)
        assert store.list_federated_credentials(make_id()) == ()
        subject = Subject(user, on.organization)
        assert store.find_subject_with_federated_credentials(user.id) == (subject, (older, newer))
        for id_ in (on.human_user.id, make_id()):
            assert store.find_subject_with_federated_credentials(id_) is None
        with on.transaction() as storage:
            assert storage.credentials.list_federated_credentials(user.id, locked=True) == (older, newer)

    def test_credentials_federated_of_an_application_are_deleted_with_their_tokens(self, on: StorageHarness) -> None:
        older = make.federated_credential(on.application, created_at=NOW - DAY)
        newer = make.federated_credential(on.application)
        on.store(newer, older, make.federated_credential(on.service_user))
        tokens = [
            on.store_value(make.access_token(None, on.application, federated_credential_id=item.id))
            for item in (older, newer)
        ]
        with on.transaction() as storage:
            assert storage.credentials.list_federated_credentials(on.application.id, locked=True) == (older, newer)
            storage.credentials.delete(FederatedCredential, on.application.id, older.id)
        assert [on.find_stored(token) for token in tokens] == [None, tokens[1]]
        on.write.applications.delete(on.application.id)
        assert on.read.credentials.list_federated_credentials(on.application.id) == ()

    def test_credentials_find_holder_knows_service_users_with_a_secret_alone(self, on: StorageHarness) -> None:
        on.store(make.service_user_secret(on.human_user))
        found = [
            on.read.credentials.find_subject_with_secrets(id_)
            for id_ in (on.service_user.id, on.human_user.id, make_id())
        ]
        assert found == [None] * 3
