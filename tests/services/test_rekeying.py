"""Rekeying: every sealed value is sealed again with a new master key; an interruption loses nothing."""

from collections import Counter
from hashlib import sha256

import pytest
from sqlalchemy import LargeBinary

from identity.crypto.sealing import MasterKey, Sealer, read_master_keys
from identity.domain.records import RecordNamespace
from identity.plugins.sql.tables import metadata
from identity.services import rekeying
from identity.services.container import Services
from identity.services.idempotency import StoredResponse
from identity.services.one_time_links import OneTimeLinkKind
from identity.services.rekeying import RekeyingResult, count_remaining, rekey
from identity.storage.stores.sealed_values import SealedValue, SealedValueKind
from identity.system_checks import SystemChecks
from identity.testing.fixtures import WorldFactory
from identity.testing.world import World

# The storage contract covers differences between storages.
pytestmark = pytest.mark.storages("memory", "sqlite")

OLD, NEW, OTHER = (MasterKey(name, sha256(name.encode()).digest()) for name in ("old", "new", "other"))
MAIL = {"identity.smtp.host": "mail.example", "identity.smtp.sender": "no-reply@id.example.com"}
PLUGIN = RecordNamespace("some_plugin")
ROWS_PER_KIND = 3
#: The signing key, and of each: a link, a stored response, a plugin's record, a mail, and a provider's secret.
ALL = 1 + 6 * ROWS_PER_KIND


class Filled:
    """A world with a sealed value of every kind, all sealed with the old key."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self._process, self._patch = world.identity.process_state, monkeypatch
        self.world = world
        self.use(OLD, *_present(world))
        rekey(world.identity.transaction, self._process.sealer, lambda _: None)
        self.use(OLD)
        self.kind = next(iter(self._process.deliveries))
        self.codes, self.providers, self.webhooks = [], [], []
        for at in range(ROWS_PER_KIND):
            self.providers.append(world.make_upstream_provider(client_secret=f"secret {at}"))
            self.webhooks.append(world.make_webhook(events=("backup.made",)))
            with world.identity.transaction() as services:
                link = services.one_time_links.issue(OneTimeLinkKind.REGISTRATION, content={"at": str(at)})
                services.record_service(PLUGIN).add("thing", str(at), {"at": at}, seal=True)
                services.record_service(PLUGIN).add("open", str(at), {"at": at})
                services.idempotency.claim_key("me", str(at), b"request")
                services.idempotency.store_response(200, b"answer")
                services.outbox.queue(self.kind, b"content")
            self.codes.append(link.rsplit("/", 1)[1])

    def use(self, *keys: MasterKey) -> Sealer:
        """Continue with these master keys, as after a restart."""
        sealer = Sealer(keys)
        self._patch.setattr(self._process, "sealer", sealer)
        self._patch.setattr(self._process.key_ring, "sealer", sealer)
        self._process.key_ring._private.clear()
        self._process.key_ring.invalidate()
        return sealer

    def reseal(self, *keys: MasterKey) -> rekeying.RekeyingResult:
        return rekey(self.world.identity.transaction, self.use(*keys), lambda _: None)

    def left(self) -> Counter[str]:
        return count_remaining(self.world.identity.read_session, self._process.sealer)

    def check(self) -> None:
        """Check that every value can be opened."""
        with self.world.identity.read_session() as services:
            services.signing_keys.current_signing_key()
            for at, provider in enumerate(self.providers):
                stored = services.storage.upstream_providers.find(provider.id)
                assert stored is not None
                assert services.upstream_providers.open_secret(stored) == f"secret {at}"
                assert services.one_time_links.read(OneTimeLinkKind.REGISTRATION, self.codes[at])[1] == {"at": str(at)}
                record = services.record_service(PLUGIN).find("thing", str(at))
                assert record is not None
                assert record.value == {"at": at}
                webhook = services.webhooks.get(self.webhooks[at].id)
                assert len(services.webhooks._signing_secrets(webhook)) == 1
            messages = services.outbox.list_due(self.kind)
            assert [services.outbox.unseal(message) for message in messages] == [b"content"] * ROWS_PER_KIND
        with self.world.identity.transaction() as services:
            for at in range(ROWS_PER_KIND):
                assert services.idempotency.claim_key("me", str(at), b"request") == StoredResponse(200, b"answer")


def _present(world: World) -> list[MasterKey]:
    sealer = world.identity.process_state.sealer
    path = world.identity.settings.data / "master.key"
    return list(read_master_keys((f"{sealer.active_id}:{path}",)))


@pytest.fixture
def filled(make_world: WorldFactory, monkeypatch: pytest.MonkeyPatch) -> Filled:
    monkeypatch.setattr(rekeying, "BATCH", 2)
    return Filled(make_world(**MAIL), monkeypatch)


def test_rekeying_makes_the_old_key_unnecessary(filled: Filled) -> None:
    filled.check()
    done = filled.reseal(NEW, OLD)
    assert (done.count, done.unreadable) == (ALL, Counter())
    assert filled.left() == Counter()
    filled.use(NEW)
    filled.check()
    assert filled.reseal(NEW, OLD).count == 0


def test_check_reports_values_of_unlisted_keys(filled: Filled) -> None:
    """A damaged signing key hides no other problem."""
    identity = filled.world.identity

    def check_result(*keys: MasterKey) -> str | None:
        checks = SystemChecks(identity.settings, identity.backend, identity.read_session, filled.use(*keys), ())
        return checks.master_keys()

    assert check_result(NEW, OLD) is None
    assert f"does not list: old ({ALL})." in str(check_result(NEW))
    with identity.transaction() as services:
        [signing_key] = services.storage.signing_keys.list_all()
        services.storage.signing_keys.update_sealed_private_key(signing_key.id, b"damaged")
    assert check_result(NEW, OLD) is None
    assert f"does not list: old ({ALL - 1})." in str(check_result(NEW))


def test_interrupted_rekeying_can_be_resumed(filled: Filled) -> None:
    class Killed(BaseException):
        """As by SIGKILL: only committed changes remain."""

    count = 0

    def die(more: int) -> None:
        nonlocal count
        count += more
        if count > ALL // 2:
            raise Killed

    sealer = filled.use(NEW, OLD)
    with pytest.raises(Killed):
        rekey(filled.world.identity.transaction, sealer, die)
    filled.check()
    assert filled.left() == Counter({"old": ALL - count})
    assert filled.reseal(NEW, OLD).count == ALL - count
    filled.use(NEW)
    filled.check()


def test_concurrent_change_is_not_overwritten(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    original = rekeying._reseal_one
    identity = filled.world.identity

    def late(
        services: Services, sealer: Sealer, kind: SealedValueKind, value: SealedValue, found: RekeyingResult
    ) -> int:
        records = services.record_service(PLUGIN)
        record = records.find("thing", "0")
        assert record is not None
        if value.key[-1] == record.key:
            records.replace(record, {"at": "changed"})
        return original(services, sealer, kind, value, found)

    monkeypatch.setattr(rekeying, "_reseal_one", late)
    done = filled.reseal(NEW, OLD)
    assert done.unreadable == Counter()
    with identity.read_session() as services:
        found = services.record_service(PLUGIN).find("thing", "0")
    assert found is not None
    assert found.value == {"at": "changed"}
    assert filled.left() == Counter()


def test_values_sealed_with_old_setting_are_reported(filled: Filled) -> None:
    filled.reseal(NEW, OLD)
    filled.use(OLD)
    with filled.world.identity.transaction() as services:
        services.outbox.queue(filled.kind, b"late")
    filled.use(NEW, OLD)
    assert filled.left() == Counter({"old": 1})


def test_unsealable_value_is_left_and_reported_by_key(filled: Filled) -> None:
    with filled.world.identity.transaction() as services:
        filled.use(OTHER, OLD)
        services.signing_keys.rekey()
    done = filled.reseal(NEW, OTHER)
    assert (done.count, done.unreadable) == (1, Counter({"old": ALL - 1}))
    filled.use(NEW, OLD)
    filled.check()


@pytest.mark.parametrize("broken", ["no sealed value", "another one's"])
def test_unsealable_signing_key_is_left_and_reported_by_id(filled: Filled, broken: str) -> None:
    identity = filled.world.identity
    with identity.transaction() as services:
        [key] = services.storage.signing_keys.list_all()
        foreign_value = Sealer((OLD,)).seal(b"the key of another one", associated_data="another")
        sealed = b"nonsense" if broken == "no sealed value" else foreign_value
        services.storage.signing_keys.update_sealed_private_key(key.id, sealed)
    done = filled.reseal(NEW, OLD)
    reported = rekeying.UNKNOWN_KEY_ID if broken == "no sealed value" else "old"
    assert (done.count, done.unreadable, done.signing_keys) == (ALL - 1, Counter({reported: 1}), [key.id])
    assert filled.left() == Counter({reported: 1})


def test_every_sealed_column_is_rekeyed() -> None:
    """Every binary column that is no digest or public key is sealed, and must be listed for rekeying."""
    plain = {"digest", "public_key", "key"}
    sealed = {
        f"{table.name}.{column.name}"
        for table in metadata.sorted_tables
        for column in table.columns
        if isinstance(column.type, LargeBinary) and column.name not in plain
    }
    assert sealed == {
        "signing_keys.sealed_private_key",
        "upstream_providers.secret",
        "webhooks.secret",
        "outgoing_messages.sealed",
        "records.sealed",
    }
