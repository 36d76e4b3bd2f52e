"""Records of plugins, each in its own namespace."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from identity.application_factory import IdentityApplication, create_application
from identity.crypto.secrets import token_digest
from identity.domain.errors import Conflict, NotFound
from identity.domain.records import RecordNamespace
from identity.domain.users import HumanUser
from identity.services.container import Services
from identity.services.records import MAX_VALUE_BYTES, RecordService
from identity.storage.errors import UnreadableRow
from identity.testing.clock import FakeClock
from tests.services.factories import make_human_user, make_organization

OWN_NAMESPACE, OTHER_NAMESPACE = RecordNamespace("mine"), RecordNamespace("theirs")
VALUE = {"secret": "JBSWY3DPEHPK3PXP", "used": [1, None, {"ü": True}]}


@pytest.fixture
def records(services: Services) -> RecordService:
    return services.record_service(OWN_NAMESPACE)


@pytest.fixture
def anna(services: Services) -> HumanUser:
    return make_human_user(services, make_organization(services))


def test_existing_key_is_not_replaced(records: RecordService) -> None:
    assert records.add("device", "key", VALUE) is None
    holder = records.add("device", "key", {})
    assert holder is not None
    assert holder.value == VALUE
    assert holder == records.find("device", "key")
    assert records.add("device", "other", {}) is None
    assert records.add("other", "key", {}) is None


def test_expired_record_frees_its_key(identity: IdentityApplication, clock: FakeClock) -> None:
    with identity.transaction() as services:
        records = services.record_service(OWN_NAMESPACE)
        assert records.add("challenge", "key", {"n": 1}, expires_at=clock() + timedelta(minutes=5)) is None
    clock.advance(minutes=5)
    with identity.transaction() as services:
        records = services.record_service(OWN_NAMESPACE)
        assert records.find("challenge", "key") is None
        assert records.consume("challenge", "key") is None
        assert records.add("challenge", "key", {"n": 2}) is None
        record = records.find("challenge", "key")
    assert record is not None
    assert record.value == {"n": 2}


def test_stale_record_is_not_replaced(records: RecordService) -> None:
    records.add("device", "key", {"n": 1})
    first = records.find("device", "key")
    assert first is not None
    second = records.replace(first, {"n": 2})
    assert records.find("device", "key") == second
    with pytest.raises(Conflict):
        records.replace(first, {"n": 3})
    assert records.replace(second, {"n": 4}).value == {"n": 4}
    assert records.delete("device", "key")
    with pytest.raises(NotFound):
        records.replace(second, {})
    assert not records.delete("device", "key")


def test_concurrent_consumers_get_record_once(identity: IdentityApplication) -> None:
    with identity.transaction() as services:
        services.record_service(OWN_NAMESPACE).add("challenge", "key", VALUE)

    def take(_: int) -> Any:
        with identity.transaction() as services:
            record = services.record_service(OWN_NAMESPACE).consume("challenge", "key")
            return record and record.value

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(take, range(40)))
    assert [answer for answer in answers if answer is not None] == [VALUE]
    with identity.transaction() as services:
        assert services.record_service(OWN_NAMESPACE).find("challenge", "key") is None
        assert services.record_service(OWN_NAMESPACE).add("challenge", "key", {}) is not None, "it still holds its key"


@pytest.mark.parametrize("seal", [False, True])
def test_records_are_deleted_with_their_user(
    services: Services, records: RecordService, anna: HumanUser, seal: bool
) -> None:
    for key in ("a", "b"):
        assert records.add("device", key, {"name": key}, user_id=anna.id, seal=seal) is None
    records.add("device", "c", {})
    records.consume("device", "b")
    assert [record.value for record in records.list_by_owner("device", user_id=anna.id)] == [{"name": "a"}]
    services.storage.users.delete(anna.id)
    assert records.list_by_owner("device", user_id=anna.id) == ()
    assert records.find("device", "a") is None
    assert records.find("device", "c") is not None
    with pytest.raises(NotFound):
        records.add("device", "d", {}, user_id=anna.id)


def test_records_of_a_user_can_be_deleted_together(records: RecordService, anna: HumanUser) -> None:
    for key in ("a", "b"):
        records.add("device", key, {}, user_id=anna.id)
    records.add("other", "a", {}, user_id=anna.id)
    assert records.delete_by_owner("device", user_id=anna.id) == 2
    assert records.find("device", "a") is None
    assert records.find("other", "a") is not None


def test_namespaces_are_isolated(services: Services, records: RecordService, anna: HumanUser) -> None:
    records.add("device", "key", VALUE, user_id=anna.id)
    record_service = services.record_service(OTHER_NAMESPACE)
    assert record_service.find("device", "key") is None
    assert record_service.consume("device", "key") is None
    assert record_service.list_by_owner("device", user_id=anna.id) == ()
    assert not record_service.delete("device", "key")
    assert record_service.delete_by_owner("device", user_id=anna.id) == 0
    record = records.find("device", "key")
    assert record is not None
    with pytest.raises(ValueError, match="another plugin"):
        record_service.replace(record, {})
    assert record_service.add("device", "key", {}) is None
    assert records.find("device", "key") == record


def test_sealed_value_and_key_are_unreadable_in_the_database(tmp_path: Path) -> None:
    path = tmp_path / "identity.db"
    settings = {
        "identity.issuer_url": "https://id.example.com",
        "identity.storage": "sql",
        "identity.plugin.sql.url": f"sqlite:///{path}",
        "identity.plugins": "sql jwt_bearer oidc_scopes project_audience manager_roles",
        "identity.development": "true",
        "identity.data": str(tmp_path),
    }
    identity = create_application(settings)
    identity.backend.migrate()
    with identity.transaction() as services:
        records = services.record_service(OWN_NAMESPACE)
        records.add("totp", "the key of ada", VALUE, seal=True)
        records.add("totp", "open", {"plain": "in the clear"})
    with identity.transaction() as services:
        records = services.record_service(OWN_NAMESPACE)
        record = records.find("totp", "the key of ada")
        assert record is not None
        assert record.value == VALUE
        changed = records.replace(record, {"secret": "ANOTHERSECRET"})
        assert changed.value == {"secret": "ANOTHERSECRET"}
        consumed = records.consume("totp", "the key of ada")
        assert consumed is not None
        assert consumed.value == {"secret": "ANOTHERSECRET"}
    identity.close()
    stored = b"".join(file.read_bytes() for file in tmp_path.glob("identity.db*"))
    assert b"in the clear" in stored
    for secret in (b"JBSWY3DPEHPK3PXP", b"ANOTHERSECRET", b"the key of ada"):
        assert secret not in stored


def test_sealed_value_is_bound_to_its_record(services: Services, records: RecordService) -> None:
    records.add("totp", "mine", VALUE, seal=True)
    stored = services.storage.records.find("mine", "totp", token_digest("mine"))
    assert stored is not None
    services.storage.records.add(replace(stored, key=token_digest("stolen")))
    with pytest.raises(UnreadableRow):
        records.find("totp", "stolen")


def test_invalid_records_are_refused(records: RecordService) -> None:
    kinds = [(kind, {}) for kind in ("Kind", "", "a b", "k" * 65)]
    values: list[Any] = [[1], "text", {1: 2}, {"n": float("nan")}, {"text": "x" * MAX_VALUE_BYTES}]
    for kind, value in [*kinds, *(("kind", value) for value in values)]:
        with pytest.raises(ValueError):  # noqa: PT011 - each in words of its own
            records.add(kind, "key", value)
    with pytest.raises(TypeError):
        records.add("kind", "key", {"at": object()})


def test_returned_values_are_copies(records: RecordService) -> None:
    value: dict[str, Any] = {"list": [1]}
    records.add("kind", "key", value)
    value["list"].append(2)
    record = records.find("kind", "key")
    assert record is not None
    assert record.value == {"list": [1]}


def test_lookup_is_limited_to_its_namespace(services: Services, records: RecordService, anna: HumanUser) -> None:
    records.add("device", "key", VALUE, user_id=anna.id, seal=True)
    found = services.lookup.find_record(OWN_NAMESPACE, "device", "key")
    assert found is not None
    assert found.value == VALUE
    assert services.lookup.list_records(OWN_NAMESPACE, "device", user_id=anna.id) == (found,)
    assert services.lookup.find_record(OTHER_NAMESPACE, "device", "key") is None
    assert services.lookup.list_records(OTHER_NAMESPACE, "device", user_id=anna.id) == ()
