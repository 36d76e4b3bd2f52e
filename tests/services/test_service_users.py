from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from identity.application import IdentityApplication
from identity.crypto import secrets
from identity.crypto.secrets import token_digest
from identity.crypto.signature_keys import PrivateKey
from identity.domain.audit import AuditFilter
from identity.domain.errors import Conflict, Invalid, NotFound
from identity.domain.expirations import NEVER
from identity.domain.organizations import Organization
from identity.domain.service_user_keys import ServiceUserKey
from identity.domain.users import ServiceUser
from identity.services.access_control import Principal
from identity.services.commands.service_users import (
    AddPersonalAccessToken,
    AddServiceUserKey,
    CreateServiceUser,
    UploadServiceUserKey,
)
from identity.services.container import Services
from identity.storage.contract import factories as make
from identity.storage.contract.factories import make_id
from identity.storage.errors import AlreadyUsed
from identity.storage.paging import PageRequest
from identity.testing.clock import FakeClock
from tests.services.factories import make_human_user, make_organization, make_service_user


@pytest.fixture
def organization(services: Services) -> Organization:
    return make_organization(services)


@pytest.fixture
def robot(services: Services, organization: Organization) -> ServiceUser:
    return make_service_user(services, organization)


@pytest.fixture(scope="module")
def public_key() -> str:
    return PrivateKey.generate().public_key().to_pem()


def upload(services: Services, user: ServiceUser, public_key: str, expires_at: datetime | None = None) -> str:
    command = UploadServiceUserKey(public_key=public_key, expires_at=expires_at)
    return services.service_users.upload_key(user.id, command, principal=Principal.OPERATOR).id


def test_all_invalid_fields_are_named() -> None:
    with pytest.raises(Invalid) as refusal:
        CreateServiceUser.decode({"user_name": "a b", "display_name": " ", "access_token_type": "x", "wings": 2})
    assert set(refusal.value.fields) == {"user_name", "display_name", "access_token_type", "wings"}
    assert all(sentence.endswith(".") for sentence in refusal.value.fields.values())


def test_key_file_has_the_only_private_key(services: Services, robot: ServiceUser, clock: FakeClock) -> None:
    file = services.service_users.add_key(robot.id, AddServiceUserKey(), principal=Principal.OPERATOR)
    stored = services.storage.credentials.find(ServiceUserKey, file.key_id, robot.id)
    assert stored is not None
    assert stored.expires_at == clock() + timedelta(days=365)
    assert file.key.startswith("-----BEGIN RSA PRIVATE KEY-----")
    assert PrivateKey.from_pem(file.key).public_key().to_der() == stored.public_key
    assert file.user_id == robot.id


def test_expiration_must_be_in_the_future(
    services: Services, robot: ServiceUser, public_key: str, clock: FakeClock
) -> None:
    for past in (clock(), clock() - timedelta(seconds=1)):
        with pytest.raises(Invalid, match="in the future"):
            upload(services, robot, public_key, past)
    upload(services, robot, public_key, clock() + timedelta(seconds=1))


def test_expiration_needs_a_time_zone() -> None:
    with pytest.raises(Invalid, match="time zone"):
        AddServiceUserKey.decode({"expires_at": "2027-01-01T00:00:00"})
    command = AddServiceUserKey.decode({"expires_at": "2027-01-01T01:00:00.5+01:00"})
    assert command.expires_at == datetime(2027, 1, 1, tzinfo=UTC)


def test_key_lifetime_can_be_limited(services: Services, robot: ServiceUser, public_key: str, clock: FakeClock) -> None:
    users = services.service_users
    users._settings = replace(users._settings, service_user_key_max_age=timedelta(days=90))
    for expires_at in (NEVER, clock() + timedelta(days=91)):
        with pytest.raises(Invalid, match="at the latest"):
            upload(services, robot, public_key, expires_at)
        command = AddPersonalAccessToken(name="CI", expires_at=expires_at)
        with pytest.raises(Invalid, match="at the latest"):
            users.add_personal_access_token(robot.id, command, principal=Principal.OPERATOR)
    upload(services, robot, public_key, clock() + timedelta(days=90))


def test_signer_is_found_while_active(
    services: Services, robot: ServiceUser, public_key: str, clock: FakeClock
) -> None:
    key_id = upload(services, robot, public_key, clock() + timedelta(seconds=10))
    users = services.service_users
    assert users.find_signing_key(key_id, robot.id) is not None
    assert users.find_signing_key(key_id, "somebody else") is None
    users.deactivate(robot.id, principal=Principal.OPERATOR)
    assert users.find_signing_key(key_id, robot.id) is None
    users.reactivate(robot.id, principal=Principal.OPERATOR)
    services.organizations.deactivate(robot.organization_id, principal=Principal.OPERATOR)
    assert users.find_signing_key(key_id, robot.id) is None
    services.organizations.reactivate(robot.organization_id, principal=Principal.OPERATOR)
    assert users.find_signing_key(key_id, robot.id) is not None
    users._now = clock() + timedelta(seconds=10)
    assert users.find_signing_key(key_id, robot.id) is None


def test_last_use_is_updated_at_most_once_a_minute(
    services: Services, robot: ServiceUser, public_key: str, clock: FakeClock
) -> None:
    key_id = upload(services, robot, public_key)
    users = services.service_users

    def use_after(seconds: int) -> datetime | None:
        users._now = clock() + timedelta(seconds=seconds)
        found = users.find_signing_key(key_id, robot.id)
        assert found is not None
        users.touch_key(found[0])
        key = services.storage.credentials.find(ServiceUserKey, key_id, robot.id)
        assert key is not None
        return key.last_used_at

    assert use_after(0) == clock()
    assert use_after(59) == clock()
    assert use_after(60) == clock() + timedelta(seconds=60)


def test_jti_is_unique_per_service_user(services: Services, robot: ServiceUser, clock: FakeClock) -> None:
    users, tokens = services.service_users, services.tokens
    for user_id in (robot.id, "another"):
        tokens.store_access_token(make.access_token(robot), users.new_assertion_record(user_id, "jti", clock()))
    with pytest.raises(AlreadyUsed):
        tokens.store_access_token(make.access_token(robot), users.new_assertion_record(robot.id, "jti", clock()))


def test_human_user_is_no_service_user(services: Services, organization: Organization) -> None:
    person = make_human_user(services, organization)
    with pytest.raises(NotFound):
        services.service_users.get(person.id)
    users = services.service_users
    for attempt in (
        lambda: users.add_key(person.id, AddServiceUserKey(), principal=Principal.OPERATOR),
        lambda: users.list_secrets(person.id),
        lambda: users.add_secret(person.id, principal=Principal.OPERATOR),
        lambda: users.remove_secret(person.id, make_id(), principal=Principal.OPERATOR),
    ):
        with pytest.raises(NotFound, match="service user"):
            attempt()


def test_expiring_keys_are_reported_once_per_step(
    identity: IdentityApplication, clock: FakeClock, public_key: str
) -> None:
    with identity.transaction() as services:
        robot = make_service_user(services, make_organization(services))
        upload(services, robot, public_key, clock() + timedelta(days=40))
        upload(services, robot, public_key, None)

    def noted() -> list[object]:
        with identity.transaction() as services:
            services.service_users.record_expiring()
        with identity.read_session() as services:
            events = services.storage.audit.page(filter=AuditFilter(event="service_user_key.expiring")).items
        return [event.detail["days_left"] for event in reversed(events)]

    assert noted() == []
    clock.advance(days=10)
    assert noted() == noted() == [30]
    clock.advance(days=23)
    assert noted() == [30, 7]
    clock.advance(days=6)
    assert noted() == noted() == [30, 7, 1]
    clock.advance(days=2)
    assert noted() == [30, 7, 1]


def test_secret_is_returned_once_and_stored_as_digest(services: Services, robot: ServiceUser, clock: FakeClock) -> None:
    _, text = services.service_users.add_secret(robot.id, principal=Principal.OPERATOR)
    assert len(text) == 43
    assert text.isalnum()
    [stored] = services.service_users.list_secrets(robot.id)
    assert (stored.user_id, stored.digest, stored.created_at) == (robot.id, token_digest(text), clock())
    assert text not in repr(stored)


def test_secrets_are_limited_to_two(services: Services, robot: ServiceUser) -> None:
    """Security 3.2."""
    users = services.service_users
    first, second = (users.add_secret(robot.id, principal=Principal.OPERATOR)[1] for _ in range(2))
    assert users.authenticate(robot.id, first) is not None
    assert users.authenticate(robot.id, second) is not None
    with pytest.raises(Conflict, match="two live secrets"):
        users.add_secret(robot.id, principal=Principal.OPERATOR)
    oldest, service_user_secret = users.list_secrets(robot.id)
    users.remove_secret(robot.id, oldest.id, principal=Principal.OPERATOR)
    assert users.list_secrets(robot.id) == (service_user_secret,)
    assert users.authenticate(robot.id, first) is None
    assert users.authenticate(robot.id, second) is not None
    users.add_secret(robot.id, principal=Principal.OPERATOR)


def test_secret_belongs_to_its_service_user(services: Services, robot: ServiceUser, organization: Organization) -> None:
    users = services.service_users
    service_user = make_service_user(services, organization, "other")
    _, text = users.add_secret(robot.id, principal=Principal.OPERATOR)
    users.add_secret(service_user.id, principal=Principal.OPERATOR)
    [stored] = users.list_secrets(robot.id)
    client = users.authenticate(robot.id, text)
    assert client is not None
    assert (client.id, client.secret_id, client.organization) == (robot.id, stored.id, organization)
    assert client.subject.user == robot
    assert users.authenticate(service_user.id, text) is None
    assert users.authenticate(robot.id, text.swapcase()) is None
    assert users.authenticate(robot.id, "") is None
    with pytest.raises(NotFound, match="secret"):
        users.remove_secret(service_user.id, stored.id, principal=Principal.OPERATOR)
    assert users.list_secrets(robot.id) == (stored,)


def test_secret_works_while_user_is_active(services: Services, robot: ServiceUser) -> None:
    users = services.service_users
    _, text = users.add_secret(robot.id, principal=Principal.OPERATOR)
    users.deactivate(robot.id, principal=Principal.OPERATOR)
    assert users.authenticate(robot.id, text) is None
    users.reactivate(robot.id, principal=Principal.OPERATOR)
    services.organizations.deactivate(robot.organization_id, principal=Principal.OPERATOR)
    assert users.authenticate(robot.id, text) is None
    services.organizations.reactivate(robot.organization_id, principal=Principal.OPERATOR)
    assert users.authenticate(robot.id, text) is not None
    users.remove(robot.id, principal=Principal.OPERATOR)
    assert users.authenticate(robot.id, text) is None


def test_unknown_service_user_costs_the_same_work(
    services: Services, robot: ServiceUser, organization: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Security 3.2: with an unknown service user, or one without a secret, the check compares against a dummy."""
    users = services.service_users
    idle = make_service_user(services, organization, "idle")
    users.add_secret(robot.id, principal=Principal.OPERATOR)
    compared: list[bytes] = []

    def noting(stored: bytes, presented: bytes) -> bool:
        compared.append(presented)
        return False

    monkeypatch.setattr(secrets, "constant_time_equal", noting)
    for user_id in (robot.id, idle.id, make_id()):
        assert users.authenticate(user_id, "wrong") is None
    assert compared == [token_digest("wrong")] * 3
    monkeypatch.undo()
    for user_id in (idle.id, make_id()):
        assert users.authenticate(user_id, "no secret has this digest") is None


def test_removing_secret_revokes_its_tokens(services: Services, robot: ServiceUser) -> None:
    users = services.service_users
    for _ in range(2):
        users.add_secret(robot.id, principal=Principal.OPERATOR)
    removed, service_user_secret = users.list_secrets(robot.id)
    tokens = [make.access_token(robot, secret_id=secret.id) for secret in (removed, service_user_secret)]
    for token in tokens:
        services.tokens.store_access_token(token)
    users.remove_secret(robot.id, removed.id, principal=Principal.OPERATOR)
    presented_access_tokens = [services.storage.tokens.find_access_token(token.digest) for token in tokens]
    assert [
        presented_access_token and presented_access_token.token for presented_access_token in presented_access_tokens
    ] == [None, tokens[1]]


def test_keys_are_listed_newest_first(services: Services, robot: ServiceUser, public_key: str) -> None:
    keys = [upload(services, robot, public_key) for _ in range(3)]
    first = services.service_users.page_keys(robot.id, PageRequest(limit=2))
    assert first.next_cursor is not None
    rest = services.service_users.page_keys(robot.id, PageRequest(limit=2, cursor=first.next_cursor))
    assert {key.id for key in (*first, *rest)} == set(keys)
    assert services.service_users.get_key(robot.id, keys[0]).id == keys[0]
    for user_id, key_id in ((robot.id, make_id()), (make_id(), keys[0])):
        with pytest.raises(NotFound):
            services.service_users.get_key(user_id, key_id)


def test_personal_access_token_has_secret_format(services: Services, robot: ServiceUser, clock: FakeClock) -> None:
    token, text = services.service_users.add_personal_access_token(
        robot.id, AddPersonalAccessToken(name="CI"), principal=Principal.OPERATOR
    )
    assert len(text) == 43
    assert text not in repr(token)
    assert (token.name, token.expires_at, token.last_used_at) == ("CI", clock() + timedelta(days=365), None)
    assert services.service_users.page_personal_access_tokens(robot.id).items == (token,)


@pytest.mark.parametrize("scope", ["openid profile", "openid openid profile "])
def test_duplicate_scopes_are_merged(services: Services, robot: ServiceUser, scope: str) -> None:
    command = AddPersonalAccessToken.decode({"name": "CI", "scope": scope})
    token, _ = services.service_users.add_personal_access_token(robot.id, command, principal=Principal.OPERATOR)
    assert token.scope == ("openid", "profile")


def test_invalid_personal_access_token_scope_is_refused(services: Services, robot: ServiceUser) -> None:
    with pytest.raises(Invalid) as refusal:
        AddPersonalAccessToken.decode({"name": "CI", "scope": 'openid "x"'})
    assert set(refusal.value.fields) == {"scope"}
    command = AddPersonalAccessToken(name="CI", scope="openid urn:service:iam:org:project:id:1:aud")
    with pytest.raises(Invalid) as refusal:
        services.service_users.add_personal_access_token(robot.id, command, principal=Principal.OPERATOR)
    assert set(refusal.value.fields) == {"scope"}


def test_expiring_tokens_are_reported_like_keys(identity: IdentityApplication, clock: FakeClock) -> None:
    with identity.transaction() as services:
        robot = make_service_user(services, make_organization(services))
        soon = AddPersonalAccessToken(name="CI", expires_at=clock() + timedelta(days=5))
        token, _ = services.service_users.add_personal_access_token(robot.id, soon, principal=Principal.OPERATOR)
    for _ in range(2):
        with identity.transaction() as services:
            services.service_users.record_expiring()
    with identity.read_session() as services:
        audit_filter = AuditFilter(event="personal_access_token.expiring", organization_id=robot.organization_id)
        [event] = services.audit_trail.page(audit_filter)
    assert (event.object_id, event.detail["days_left"]) == (token.id, 7)
