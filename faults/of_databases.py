"""What happens to the database, and on the way to it."""

import time
from collections.abc import Callable
from contextlib import closing

from faults.client import Client, Kind, Tally
from faults.databases import Database
from faults.ledger import Ledger
from faults.load import Codes
from faults.scene import Fault, Scene
from faults.servers import Server

_SERVERS = ("postgresql", "mariadb")


def _between(
    begin: Callable[[Server], None], end: Callable[[Server], None], factor: float = 1.0, at_least: float = 0.0
) -> Callable[[Scene], None]:
    def happens(scene: Scene) -> None:
        database = scene.database
        assert isinstance(database, Server)  # noqa: S101 - the fault says so
        begin(database)
        time.sleep(max(scene.span * factor, at_least))
        end(database)

    return happens


def _slow_down(database: Server) -> None:
    database.relay.delay, database.relay.held = 0.2, 0


def _speed_up(database: Server) -> None:
    database.relay.delay = 0.0
    if not database.relay.held:
        raise AssertionError("no message has taken longer")


def _thaw(database: Server) -> None:
    if not database.is_frozen:
        raise AssertionError("the database has gone on")
    database.thaw()


def _disk_full(scene: Scene) -> None:
    scene.database.fill_up()
    time.sleep(scene.span)
    scene.database.make_room()
    if isinstance(scene.database, Server):
        # One ends by itself when there is no room for its log; then its operator starts it.
        scene.database.start()


def _damaged_keys(scene: Scene) -> None:
    """The private signing keys cannot be read; nodes that are started now have never seen them whole."""
    damage = scene.database.damage
    scene.database.execute("CREATE TABLE kept AS SELECT id, sealed_private_key AS kept FROM signing_keys")
    scene.database.execute(f"UPDATE signing_keys SET sealed_private_key = {damage}")  # noqa: S608 - constants
    scene.nodes[0].kill()
    scene.nodes[0].start()
    scene.nodes[0].wait_until_serving()
    with closing(Client(scene.nodes.ports[:1], scene.nodes.host, Tally())) as client:
        # With the access token comes an ID token: 503, unless the next key is there by now, which takes over.
        Codes(scene.stock, client, Ledger()).step()
    if "cannot sign" not in scene.nodes[0].log.read_text("utf-8", "replace"):
        raise AssertionError("no key was damaged for a node that has never seen one whole")
    time.sleep(scene.span)
    scene.database.execute(
        "UPDATE signing_keys SET sealed_private_key = (SELECT kept FROM kept WHERE kept.id = signing_keys.id)"
        " WHERE id IN (SELECT id FROM kept)"
    )
    scene.database.execute("DROP TABLE kept")


#: Texts whose form is ours, by their tables: all that are there are no longer of that form.
_TEXTS = {"applications": "grant_types", "sessions": "proofs"}


def _damaged_rows(scene: Scene) -> None:
    """What stands in rows cannot be understood, and can again."""
    for table, column in _TEXTS.items():
        scene.database.execute(f"UPDATE {table} SET {column} = 'x' || {column}")  # noqa: S608 - constants
    time.sleep(scene.span)
    for table, column in _TEXTS.items():
        whole = f"substr({column}, 2) WHERE {column} LIKE 'x%'"
        scene.database.execute(f"UPDATE {table} SET {column} = {whole}")  # noqa: S608 - constants


#: A batch of copies of a token that is there, expired long ago.
_BATCH = 2000
_EXPIRED = """
    INSERT INTO access_tokens
        (id, digest, format, subject, client_id, scope, audience, issued_at, expires_at, actors)
    WITH RECURSIVE numbers(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < {batch})
    SELECT '{batch_id}-' || number, {digest}, format, subject, client_id, scope, audience, 1, 2, actors
    FROM numbers CROSS JOIN (SELECT * FROM access_tokens LIMIT 1) AS one
"""
_OVER = "SELECT count(*) FROM access_tokens WHERE expires_at = 2"


def expired_tokens(database: Database, many: int) -> None:
    """Have so many of them stored."""
    for number in range(many // _BATCH):
        digest = database.digest.format(text=f"'{number}-' || number")
        database.execute(_EXPIRED.format(batch=_BATCH, batch_id=number, digest=digest))


def _purged(scene: Scene) -> None:
    """Tokens that have expired are deleted while others are issued."""
    if scene.database.number(_OVER) < min(scene.expired, _BATCH):
        raise AssertionError("there were no expired tokens")
    scene.nodes[0].run("purge")
    left = scene.database.number(_OVER)
    if left:
        raise AssertionError(f"{left} expired tokens were left")


_BUSY = (Kind.BUSY,)

DATABASES = (
    Fault(
        "stopped",
        "the database is stopped",
        _between(lambda one: one.stop(), lambda one: one.start()),
        _SERVERS,
        bites=_BUSY,
    ),
    Fault(
        "crashed",
        "kill -9 of all the database's processes",
        _between(lambda one: one.kill(), lambda one: one.start()),
        _SERVERS,
        bites=_BUSY,
        everywhere=True,
    ),
    Fault(
        "frozen",
        "the database does nothing (SIGSTOP)",
        _between(lambda one: one.freeze(), _thaw, 4, at_least=8.0),
        ("postgresql",),
        bites=_BUSY,
        slowest=10.0,
        everywhere=True,
    ),
    # Given up when it has been silent for ten seconds, and waited for as long again by who connects anew: nobody is
    # answered sooner if it lasts longer.
    Fault(
        "frozen",
        "the database does nothing (SIGSTOP)",
        _between(lambda one: one.freeze(), _thaw, 4, at_least=12.0),
        ("mariadb",),
        everywhere=True,
    ),
    Fault("slow", "each message to the database takes 0.2 s", _between(_slow_down, _speed_up, 2), _SERVERS),
    Fault(
        "refusing",
        "the database's address refuses connections",
        _between(lambda one: one.relay.gone(), lambda one: one.relay.heal()),
        _SERVERS,
        bites=_BUSY,
    ),
    Fault("disk-full", "the database's disk is full", _disk_full, bites=_BUSY, disk=400, everywhere=True),
    Fault("damaged", "private keys in the database are damaged", _damaged_keys, kills=True),
    Fault("damaged-rows", "rows in the database are damaged", _damaged_rows, bites=_BUSY, everywhere=True),
    Fault(
        "purge",
        "expired tokens are purged",
        _purged,
        prepares=lambda scene: expired_tokens(scene.database, scene.expired),
        is_quiet=True,
        is_compared=True,
        everywhere=True,
    ),
)
