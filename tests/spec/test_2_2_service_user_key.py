"""Service description §2.2: service user keys and the key file."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from identity.crypto.signature_keys import PublicKey
from identity.domain.errors import Invalid, NotFound
from identity.domain.service_user_keys import KeyFile, ServiceUserKey
from identity.services.access_control import Principal
from identity.services.commands.service_users import AddServiceUserKey, UploadServiceUserKey
from identity.testing.fixtures import WorldFactory
from identity.testing.jwt_assertions import assertion_claims, sign_assertion
from identity.testing.response_checks import check_oauth_error, check_token_response
from identity.testing.world import ServiceUserProgram, World

REFUSED = "the assertion is not valid"


def make_key_file(world: World, user_id: str, **values: Any) -> dict[str, str]:
    file = world.operator_services.service_users.add_key(user_id, AddServiceUserKey.decode(values))
    members: dict[str, str] = json.loads(file.to_json())
    return members


def upload(world: World, user_id: str, public_key: str, **values: Any) -> str:
    command = UploadServiceUserKey.decode({"public_key": public_key, **values})
    with world.transaction_services() as services:
        return services.service_users.upload_key(user_id, command, principal=Principal.OPERATOR).id


@pytest.mark.shows("2.2.5", "2.2.6", "2.2.7", "2.2.8")
def test_key_file_has_exactly_the_published_members(world: World, robot: ServiceUserProgram) -> None:
    file = make_key_file(world, robot.id)
    assert list(file) == ["type", "keyId", "key", "userId"]
    assert file["type"] == "serviceaccount"
    assert file["userId"] == robot.id
    assert file["key"].startswith("-----BEGIN RSA PRIVATE KEY-----\n")
    assert file["key"].endswith("-----END RSA PRIVATE KEY-----\n")
    key = load_pem_private_key(file["key"].encode(), password=None)
    assert isinstance(key, rsa.RSAPrivateKey)
    assert key.key_size == 2048
    assert key.private_numbers().public_numbers.e == 65537


@pytest.mark.shows("2.2.6", "2.2.7", "2.2.8", "5.1.2")
def test_key_file_gets_a_token(world: World, robot: ServiceUserProgram) -> None:
    """§5.1: the key file is sufficient. keyId becomes the kid header, userId becomes iss and sub, and key signs."""
    file = make_key_file(world, robot.id)
    key = load_pem_private_key(file["key"].encode(), password=None)
    assert isinstance(key, rsa.RSAPrivateKey)
    assertion = sign_assertion(
        assertion_claims(file["userId"], world.issuer, world.clock.seconds), key, key_id=file["keyId"]
    )
    token = check_token_response(world.client.exchange_assertion(assertion))["access_token"]
    assert world.client.fetch_userinfo(token).json["sub"] == robot.id


@pytest.mark.storages("memory")  # key generation is slow and independent of the storage
@pytest.mark.parametrize("bits", [3072, 4096])
def test_longer_keys_are_generated_on_request(world: World, robot: ServiceUserProgram, bits: int) -> None:
    key = load_pem_private_key(make_key_file(world, robot.id, key_size=bits)["key"].encode(), password=None)
    assert isinstance(key, rsa.RSAPrivateKey)
    assert key.key_size == bits


def test_other_key_sizes_are_refused() -> None:
    for bits in (512, 1024, 2047, 8192):
        with pytest.raises(Invalid) as refusal:
            AddServiceUserKey.decode({"key_size": bits})
        assert list(refusal.value.fields) == ["key_size"]


@pytest.mark.shows("2.2.3")
@pytest.mark.storages("sqlite")  # reads the database file directly
def test_private_key_is_not_stored(isolated_world: World) -> None:
    """Security 2.10: the response contains it once, and it is never stored."""
    robot = isolated_world.make_service_user_program()
    file = make_key_file(isolated_world, robot.id)
    key = load_pem_private_key(file["key"].encode(), password=None)
    assert isinstance(key, rsa.RSAPrivateKey)
    isolated_world.close()
    path = Path(isolated_world.settings["identity.plugin.sql.url"].removeprefix("sqlite:///"))
    stored = b"".join(item.read_bytes() for item in path.parent.glob(f"{path.name}*"))
    assert file["keyId"].encode() in stored
    numbers = key.private_numbers()
    for secret in (numbers.p, numbers.q, numbers.d):
        assert secret.to_bytes((secret.bit_length() + 7) // 8, "big") not in stored
    for line in file["key"].splitlines()[2:-2]:
        assert line.encode() not in stored
    assert b"PRIVATE KEY" not in stored


def test_key_file_repr_hides_key(world: World, robot: ServiceUserProgram) -> None:
    with world.transaction_services() as services:
        file: KeyFile = services.service_users.add_key(robot.id, AddServiceUserKey(), principal=Principal.OPERATOR)
    assert "PRIVATE" not in f"{file!r} {file}"
    [event] = [event for event in world.audit_events(object_id=file.key_id) if event.event == "service_user_key.added"]
    assert "PRIVATE" not in repr(event)
    assert event.organization_id == robot.organization.id


@pytest.mark.shows("2.2.9")
def test_expired_key_is_refused(world: World, robot: ServiceUserProgram) -> None:
    """Security 2.10, to the second."""
    short_lived = world.add_service_user_key(robot, expires_at=world.clock() + timedelta(hours=1))
    world.clock.advance(3599)
    check_token_response(short_lived.request_token())
    world.clock.advance(1)
    check_oauth_error(short_lived.request_token(), "invalid_grant", description=REFUSED)
    check_token_response(robot.request_token())


@pytest.mark.shows("2.2.10")
def test_expiration_date_must_be_in_the_future(world: World, robot: ServiceUserProgram) -> None:
    for seconds in (0, -1, -86400):
        with pytest.raises(Invalid) as refusal:
            make_key_file(world, robot.id, expires_at=(world.clock() + timedelta(seconds=seconds)).isoformat())
        assert refusal.value.fields == {"expires_at": "Choose an expiration date in the future."}


@pytest.mark.shows("2.2.10")
def test_expiration_date_must_be_rfc_3339() -> None:
    for text in ("2099-01-01", "2099-01-01T00:00:00", "tomorrow", "99999-01-01T00:00:00Z", 12.5, {}):
        with pytest.raises(Invalid) as refusal:
            AddServiceUserKey.decode({"expires_at": text})
        assert list(refusal.value.fields) == ["expires_at"]


def test_expiration_date_is_stored_in_utc(world: World, robot: ServiceUserProgram) -> None:
    file = make_key_file(world, robot.id, expires_at="2099-06-01T02:00:00+02:00")
    key = world.operator_services.storage.credentials.find(ServiceUserKey, file["keyId"], robot.id)
    assert key.expires_at == datetime(2099, 6, 1, tzinfo=UTC)
    assert key.expires_at.utcoffset() == timedelta()


@pytest.mark.shows("2.2.10", "8.4")
@pytest.mark.storages("memory")  # a setting, checked before any storage
def test_maximum_expiration_is_a_setting(make_world: WorldFactory) -> None:
    world = make_world(**{"identity.service_user_key_max_age": "90d"})
    with world.transaction_services() as services:
        instance = services.storage.organizations.find_instance()
        assert instance is not None
        from identity.services.instance_bootstrap import ensure_service_user

        user = ensure_service_user(services, instance.organization_id, "robot")
    make_key_file(world, user.id, expires_at=(world.clock() + timedelta(days=90)).isoformat())
    for late in ((world.clock() + timedelta(days=90, seconds=1)).isoformat(), "never"):
        with pytest.raises(Invalid) as refusal:
            make_key_file(world, user.id, expires_at=late)
        assert list(refusal.value.fields) == ["expires_at"]


def test_removed_key_is_refused_and_its_tokens_end(world: World, robot: ServiceUserProgram) -> None:
    """Live keys can overlap; each has its own tokens."""
    second = world.add_service_user_key(robot)
    of_first, of_second = robot.management_token(), second.management_token()
    world.operator_services.service_users.remove_key(robot.id, robot.key_id)
    check_oauth_error(robot.request_token(), "invalid_grant", description=REFUSED)
    assert world.client.fetch_userinfo(of_first).status_int == 401
    assert world.client.introspect(of_first, world.introspector).json == {"active": False}
    assert world.client.call_management_api("/me", of_first).status_int == 401
    check_token_response(second.request_token())
    assert world.client.fetch_userinfo(of_second).status_int == 200
    assert world.client.introspect(of_second, world.introspector).json["active"] is True


@pytest.mark.shows("2.2.1")
def test_foreign_key_cannot_be_removed(world: World, robot: ServiceUserProgram) -> None:
    program = world.make_service_user_program(robot.organization)
    with pytest.raises(NotFound), world.transaction_services() as services:
        services.service_users.remove_key(program.id, robot.key_id, principal=Principal.OPERATOR)
    check_token_response(robot.request_token())


def test_public_key_can_be_uploaded_as_pem_or_jwk(world: World, robot: ServiceUserProgram) -> None:
    key = world.key_pool.next()
    public = PublicKey(key.public_key())
    pkcs1 = key.public_key().public_bytes(Encoding.PEM, PublicFormat.PKCS1).decode()
    for text in (public.to_pem(), pkcs1, json.dumps(public.to_jwk("mine"))):
        key_id = upload(world, robot.id, text)
        check_token_response(world.client.exchange_assertion(sign_assertion(robot.claims(), key, key_id=key_id)))


def pem_of(key: Any) -> str:
    pem: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return pem.decode()


def private_pem(key: Any) -> str:
    pem: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem.decode()


UNUSABLE = {
    "a short key": lambda: pem_of(rsa.generate_private_key(public_exponent=65537, key_size=1024)),  # noqa: S505
    "a private key": lambda: private_pem(ed25519.Ed25519PrivateKey.generate()),
    "a key on another curve": lambda: pem_of(ec.generate_private_key(ec.SECP384R1())),
    "a shared secret": lambda: '{"kty":"oct","k":"AAAA"}',
    "rubbish": lambda: "not a key",
    "nothing": lambda: "",
}


@pytest.mark.parametrize("make", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_weak_or_unsupported_public_key_is_refused(world: World, robot: ServiceUserProgram, make: Any) -> None:
    """Security 2.1."""
    with pytest.raises(Invalid) as refusal:
        upload(world, robot.id, make())
    assert list(refusal.value.fields) == ["public_key"]


def test_human_users_have_no_keys(world: World) -> None:
    with pytest.raises(NotFound):
        make_key_file(world, world.make_human_user().id)


def test_key_last_use_is_recorded_once_a_minute(world: World, robot: ServiceUserProgram) -> None:
    def last_use() -> datetime | None:
        key = world.operator_services.storage.credentials.find(ServiceUserKey, robot.key_id, robot.id)
        assert key is not None
        return key.last_used_at

    assert last_use() is None
    check_token_response(robot.request_token())
    first = world.clock()
    assert last_use() == first
    world.clock.advance(59)
    check_token_response(robot.request_token())
    assert last_use() == first
    world.clock.advance(1)
    check_token_response(robot.request_token())
    assert last_use() == world.clock()


def test_expiring_key_is_audited_30_7_and_1_days_before(isolated_world: World) -> None:
    """Decisions, service user keys: one audit event for each step."""
    world = isolated_world
    robot = world.make_service_user_program(expires_at=world.clock() + timedelta(days=60))
    world.make_service_user_program()

    def steps() -> list[object]:
        world.identity.background_jobs.record_expiring_keys()
        events = world.audit_events(event="service_user_key.expiring")
        assert {event.object_id for event in events} <= {robot.key_id}
        return [event.detail["days_left"] for event in reversed(events)]

    assert steps() == []
    for days, expected in ((30, [30]), (1, [30]), (22, [30, 7]), (6, [30, 7, 1]), (1, [30, 7, 1])):
        world.clock.advance(days=days)
        assert steps() == expected


def test_identifiers_are_opaque_and_unique(world: World, robot: ServiceUserProgram) -> None:
    key_ids = [world.add_service_user_key(robot).key_id for _ in range(3)]
    assert len({robot.key_id, *key_ids}) == 4
    assert all(re.fullmatch(r"[\x21-\x7e]{1,128}", key_id) for key_id in key_ids)
