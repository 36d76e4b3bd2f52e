"""Faults of the database and of connections to it."""

import time
from collections.abc import Callable
from contextlib import closing

from faults.database import FaultDatabase
from faults.database_servers import FaultDatabaseServer
from faults.fault_run import Fault, FaultEnvironment
from faults.http_client import FailoverClient, ResponseClass, ResponseTally
from faults.ledger import Ledger
from faults.mixed_load import AuthorizationCodeLane

_SERVERS = ("postgresql", "mariadb")


def _begin_and_end(
    begin: Callable[[FaultDatabaseServer], None],
    end: Callable[[FaultDatabaseServer], None],
    factor: float = 1.0,
    at_least: float = 0.0,
) -> Callable[[FaultEnvironment], None]:
    def happens(scene: FaultEnvironment) -> None:
        database = scene.database
        assert isinstance(database, FaultDatabaseServer)  # noqa: S101 - the fault says so
        begin(database)
        time.sleep(max(scene.fault_seconds * factor, at_least))
        end(database)

    return happens


def _slow_down(database: FaultDatabaseServer) -> None:
    database.proxy.delay, database.proxy.is_paused = 0.2, 0


def _speed_up(database: FaultDatabaseServer) -> None:
    database.proxy.delay = 0.0
    if not database.proxy.is_paused:
        raise AssertionError("no message has taken longer")


def _thaw(database: FaultDatabaseServer) -> None:
    if not database.is_frozen:
        raise AssertionError("the database has gone on")
    database.thaw()


def _fill_disk(scene: FaultEnvironment) -> None:
    scene.database.fill_disk()
    time.sleep(scene.fault_seconds)
    scene.database.free_disk()
    if isinstance(scene.database, FaultDatabaseServer):
        # A server without room for its log may have ended; its operator restarts it.
        scene.database.start()


def _damage_keys(scene: FaultEnvironment) -> None:
    """The private signing keys are damaged; restarted nodes have never cached them."""
    damage = scene.database.damaged_bytes_sql
    scene.database.execute("CREATE TABLE kept AS SELECT id, sealed_private_key AS kept FROM signing_keys")
    scene.database.execute(f"UPDATE signing_keys SET sealed_private_key = {damage}")  # noqa: S608 - constants
    scene.nodes[0].kill()
    scene.nodes[0].start()
    scene.nodes[0].wait_until_serving()
    with closing(FailoverClient(scene.nodes.ports[:1], scene.nodes.host, ResponseTally())) as client:
        # The response includes an ID token: 503, unless the next key already exists and takes over.
        AuthorizationCodeLane(scene.stock, client, Ledger()).step()
    if "cannot sign" not in scene.nodes[0].log.read_text("utf-8", "replace"):
        raise AssertionError("no key was damaged for a node that has never seen one whole")
    time.sleep(scene.fault_seconds)
    scene.database.execute(
        "UPDATE signing_keys SET sealed_private_key = (SELECT kept FROM kept WHERE kept.id = signing_keys.id)"
        " WHERE id IN (SELECT id FROM kept)"
    )
    scene.database.execute("DROP TABLE kept")


#: Columns in formats of our own, by table: all values are damaged.
_DAMAGED_COLUMNS = {"applications": "settings", "sessions": "proofs"}


def _damage_rows(scene: FaultEnvironment) -> None:
    """Rows are damaged, and repaired."""
    for table, column in _DAMAGED_COLUMNS.items():
        scene.database.execute(f"UPDATE {table} SET {column} = 'x' || {column}")  # noqa: S608 - constants
    time.sleep(scene.fault_seconds)
    for table, column in _DAMAGED_COLUMNS.items():
        whole = f"substr({column}, 2) WHERE {column} LIKE 'x%'"
        scene.database.execute(f"UPDATE {table} SET {column} = {whole}")  # noqa: S608 - constants


#: A batch of copies of an existing token that expired long ago.
_BATCH = 2000
_EXPIRED = """
    INSERT INTO access_tokens
        (id, digest, format, subject, client_id, scope, audience, issued_at, expires_at, actors)
    WITH RECURSIVE numbers(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < {batch})
    SELECT '{batch_id}-' || number, {digest}, format, subject, client_id, scope, audience, 1, 2, actors
    FROM numbers CROSS JOIN (SELECT * FROM access_tokens LIMIT 1) AS one
"""
_EXPIRED_COUNT = "SELECT count(*) FROM access_tokens WHERE expires_at = 2"


def store_expired_tokens(database: FaultDatabase, many: int) -> None:
    for number in range(many // _BATCH):
        digest = database.digest_sql.format(text=f"'{number}-' || number")
        database.execute(_EXPIRED.format(batch=_BATCH, batch_id=number, digest=digest))


def _purge_under_load(scene: FaultEnvironment) -> None:
    """Expired tokens are purged while others are issued."""
    if scene.database.query_number(_EXPIRED_COUNT) < min(scene.expired_tokens, _BATCH):
        raise AssertionError("there were no expired tokens")
    scene.nodes[0].run_command("purge")
    left = scene.database.query_number(_EXPIRED_COUNT)
    if left:
        raise AssertionError(f"{left} expired tokens were left")


_BUSY = (ResponseClass.BUSY,)

DATABASE_FAULTS = (
    Fault(
        "stopped",
        "the database is stopped",
        _begin_and_end(
            lambda fault_database_server: fault_database_server.stop(),
            lambda fault_database_server: fault_database_server.start(),
        ),
        _SERVERS,
        expected_classes=_BUSY,
    ),
    Fault(
        "crashed",
        "kill -9 of all the database's processes",
        _begin_and_end(
            lambda fault_database_server: fault_database_server.kill(),
            lambda fault_database_server: fault_database_server.start(),
        ),
        _SERVERS,
        expected_classes=_BUSY,
        is_quick_on_all_storages=True,
    ),
    Fault(
        "frozen",
        "the database does nothing (SIGSTOP)",
        _begin_and_end(lambda fault_database_server: fault_database_server.freeze(), _thaw, 4, at_least=8.0),
        ("postgresql",),
        expected_classes=_BUSY,
        max_latency=10.0,
        is_quick_on_all_storages=True,
    ),
    # Requests give up after ten seconds of silence, and new connections take as long again: a longer fault would change
    # nothing.
    Fault(
        "frozen",
        "the database does nothing (SIGSTOP)",
        _begin_and_end(lambda fault_database_server: fault_database_server.freeze(), _thaw, 4, at_least=12.0),
        ("mariadb",),
        is_quick_on_all_storages=True,
    ),
    Fault("slow", "each message to the database takes 0.2 s", _begin_and_end(_slow_down, _speed_up, 2), _SERVERS),
    Fault(
        "refusing",
        "the database's address refuses connections",
        _begin_and_end(
            lambda fault_database_server: fault_database_server.proxy.refuse_connections(),
            lambda fault_database_server: fault_database_server.proxy.restore(),
        ),
        _SERVERS,
        expected_classes=_BUSY,
    ),
    Fault(
        "disk-full",
        "the database's disk is full",
        _fill_disk,
        expected_classes=_BUSY,
        disk_megabytes=400,
        is_quick_on_all_storages=True,
    ),
    Fault("damaged", "private keys in the database are damaged", _damage_keys, kills_processes=True),
    Fault(
        "damaged-rows",
        "rows in the database are damaged",
        _damage_rows,
        expected_classes=_BUSY,
        is_quick_on_all_storages=True,
    ),
    Fault(
        "purge",
        "expired tokens are purged",
        _purge_under_load,
        prepare=lambda scene: store_expired_tokens(scene.database, scene.expired_tokens),
        is_quiet=True,
        is_compared=True,
        is_quick_on_all_storages=True,
    ),
)
