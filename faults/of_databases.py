"""What happens to the database, and on the way to it."""

import time
from collections.abc import Callable

from faults.databases import Postgresql
from faults.scene import Fault, Scene

_POSTGRESQL = ("postgresql",)


def _postgresql(scene: Scene) -> Postgresql:
    assert isinstance(scene.database, Postgresql)  # noqa: S101 - the fault says so
    return scene.database


def _between(
    begin: Callable[[Postgresql], None], end: Callable[[Postgresql], None], factor: float = 1.0
) -> Callable[[Scene], None]:
    def happens(scene: Scene) -> None:
        database = _postgresql(scene)
        begin(database)
        time.sleep(scene.span * factor)
        end(database)

    return happens


def _slow_down(database: Postgresql) -> None:
    database.relay.delay = 0.2


def _speed_up(database: Postgresql) -> None:
    database.relay.delay = 0.0


def _disk_full(scene: Scene) -> None:
    scene.database.fill_up()
    time.sleep(scene.span)
    scene.database.make_room()
    if isinstance(scene.database, Postgresql):
        # It ends by itself when there is no room for its log; then its operator starts it.
        scene.database.start()


#: Table, column, and bytes that stand for damage; by storage.
_DAMAGE = {
    "sqlite": ("X'00'", "CREATE TABLE kept AS SELECT id, {column} AS kept FROM {table}"),
    "postgresql": ("'\\x00'::bytea", "CREATE TABLE kept AS SELECT id, {column} AS kept FROM {table}"),
}


def _damaged_keys(scene: Scene) -> None:
    """The private signing keys cannot be read; nodes that are started now have never seen them whole."""
    damage, keep = _DAMAGE[scene.database.name]
    where = {"table": "signing_keys", "column": "sealed_private_key"}
    scene.database.execute(keep.format(**where))
    scene.database.execute(f"UPDATE signing_keys SET sealed_private_key = {damage}")  # noqa: S608 - constants
    scene.nodes[0].kill()
    scene.nodes[0].start()
    scene.nodes[0].wait_until_serving()
    time.sleep(scene.span)
    scene.database.execute(
        "UPDATE signing_keys SET sealed_private_key = (SELECT kept FROM kept WHERE kept.id = signing_keys.id)"
        " WHERE id IN (SELECT id FROM kept)"
    )
    scene.database.execute("DROP TABLE kept")


DATABASES = (
    Fault("stopped", "the database is stopped", _between(Postgresql.stop, Postgresql.start), _POSTGRESQL),
    Fault(
        "crashed", "kill -9 of all the database's processes", _between(Postgresql.kill, Postgresql.start), _POSTGRESQL
    ),
    Fault(
        "frozen",
        "the database does nothing (SIGSTOP)",
        _between(Postgresql.freeze, Postgresql.thaw, 4),
        _POSTGRESQL,
        slowest=10.0,
    ),
    Fault("slow", "each message to the database takes 0.2 s", _between(_slow_down, _speed_up, 2), _POSTGRESQL),
    Fault(
        "refusing",
        "the database's address refuses connections",
        _between(lambda database: database.relay.gone(), lambda database: database.relay.heal()),
        _POSTGRESQL,
    ),
    Fault("disk-full", "the database's disk is full", _disk_full, disk=400),
    Fault("damaged", "private keys in the database are damaged", _damaged_keys),
)
