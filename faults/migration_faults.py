"""Kills migrations of a filled database at any of their statements, until one completes."""

import json
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Connection, MetaData, Table, inspect, text

from benchmarks.service_process import ROOT
from faults.database import FaultDatabase
from faults.database_faults import store_expired_tokens
from faults.fault_run import Fault, FaultReport
from faults.http_client import FailoverClient, ResponseTally
from faults.ledger import Ledger, LedgerFindings, NotRecovered
from faults.mixed_load import AssertionLane, AuthorizationCodeLane, ManagementLane, RefreshTokenLane, RevocationLane
from faults.seed_data import create_seed_data
from faults.service_nodes import ServiceNode, ServiceNodes, create_nodes
from faults.storages import create_database
from identity.plugins.sql import SqlPluginSettings
from identity.plugins.sql.engines import open_migration_engine
from identity.plugins.sql.migrations.runner import script_directory, upgrade
from identity.plugins.sql.tables import metadata

#: Number of steps of each lane before the migration, recorded in the ledger.
_STEPS = 12
#: Expired tokens that make full table scans take a while.
_FILLED_ROWS = 20_000
#: The initial revision: MariaDB's first one, and the first that has all of today's values.
_OLD_REVISIONS = {"sqlite": "0004", "postgresql": "0004", "mariadb": "0008"}
#: Numbers of changes after which successive attempts are killed: where all is one transaction, each attempt starts
#: over, elsewhere it resumes. Every second one is killed while the database executes the change, for this many seconds.
_KILLED_STATEMENTS = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89)
_WORK_SECONDS = 0.01
#: The command `identity migrate`, which kills itself at that point.
_DYING_PROGRAM = """
import os, signal, sys, threading
from sqlalchemy import event
from sqlalchemy.engine import Engine

left, seconds = int(sys.argv.pop(1)), float(sys.argv.pop(1))

@event.listens_for(Engine, "before_cursor_execute")
def count(_connection, _cursor, statement, *_others):
    global left
    left -= statement.split(None, 1)[0].upper() in ("ALTER", "CREATE", "DELETE", "DROP", "INSERT", "UPDATE")
    if left:
        return
    left = -1
    if seconds:
        threading.Timer(seconds, os.kill, [os.getpid(), signal.SIGKILL]).start()
    else:
        os.kill(os.getpid(), signal.SIGKILL)

from identity.cli import main
raise SystemExit(main())
"""


@dataclass(frozen=True)
class KilledMigrationFault:
    """A fault with its own database and without load: no process serves before its migration is complete."""

    name: str
    title: str
    storages: Collection[str] = ("sqlite", "postgresql", "mariadb")

    def run(self, storage: str, folder: Path) -> FaultReport:
        """Run it; returns the outcome."""
        fault = Fault(self.name, self.title, lambda scene: None)
        try:
            with create_database(storage, folder) as database, create_nodes(folder, database, 1, {}) as nodes:
                killed, findings = self._kill_and_verify(database, nodes)
        except (AssertionError, NotRecovered) as problem:
            return FaultReport(fault, storage, violations=[str(problem)])
        offences = [] if killed > 1 else [f"{killed} migrations were killed: others were over before"]
        return FaultReport(
            fault,
            storage,
            requests=killed,
            checked=findings.checked,
            lost=findings.lost,
            duplicated=findings.duplicated,
            violations=offences,
        )

    def _kill_and_verify(self, database: FaultDatabase, nodes: ServiceNodes) -> tuple[int, LedgerFindings]:
        """Number of killed migrations, and the findings of the ledger after the last one."""
        stock = create_seed_data(nodes[0].ini)
        nodes.start()
        ledger, tally = Ledger(), ResponseTally()
        with closing(FailoverClient(nodes.ports, nodes.host, tally)) as client:
            lanes = [
                kind(stock, client, ledger)
                for kind in (AssertionLane, RefreshTokenLane, AuthorizationCodeLane, RevocationLane, ManagementLane)
            ]
            for lane in lanes * _STEPS:
                lane.step()
            if tally.violations:
                raise AssertionError(str(tally.violations))
            nodes[0].terminate()
            _downgrade_schema(
                database.url or f"sqlite:///{nodes[0].ini.parent}/data/identity.sqlite", _OLD_REVISIONS[database.name]
            )
            store_expired_tokens(database, _FILLED_ROWS)
            killed = _kill_until_done(nodes[0])
            nodes.start()
            client.close()
            return killed, ledger.verify(stock, client)


#: Statements that delete everything.
_EMPTY = {
    "postgresql": ("DROP SCHEMA public CASCADE", "CREATE SCHEMA public"),
    "mariadb": ("SET FOREIGN_KEY_CHECKS = 0",),
}


def _downgrade_schema(url: str, revision: str) -> None:
    """Recreate the database with the schema of this revision, and with the rows that it supports."""
    engine = open_migration_engine(SqlPluginSettings(url=url))
    try:
        with engine.connect() as connection:
            rows = {table.name: _read_rows(connection, table) for table in _list_tables(connection)}
        engine.dispose()
        if engine.url.database and engine.dialect.name == "sqlite":
            for name in ("", "-wal", "-shm"):
                Path(engine.url.database + name).unlink(missing_ok=True)
        with engine.begin() as connection:
            for statement in _EMPTY.get(engine.dialect.name, ()):
                connection.execute(text(statement))
            if engine.dialect.name == "mariadb":
                for name in inspect(connection).get_table_names():
                    connection.execute(text(f"DROP TABLE {name}"))
        with engine.begin() as connection:
            upgrade(connection, revision)
            for table in _list_tables(connection):
                cells = [_cells_before_settings(table.name, row) for row in rows[table.name]]
                known = [{column.name: row[column.name] for column in table.columns} for row in cells]
                if known:
                    connection.execute(table.insert(), known)
    finally:
        engine.dispose()


def _cells_before_settings(table: str, row: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """The row with its settings in columns, as before revision 0051."""
    if "settings" not in row:
        return row
    defaults = script_directory().get_revision("0051").module._SETTINGS[table]
    settings = defaults | json.loads(row["settings"])
    return {**row, **{name: json.dumps(item) if isinstance(item, list) else item for name, item in settings.items()}}


def _list_tables(connection: Connection) -> Sequence[Table]:
    """Existing tables with their writable columns, ordered so that none refers to a later one."""
    inspector = inspect(connection)
    return [
        Table(
            table.name,
            MetaData(),
            *(
                Column(column["name"], column["type"])
                for column in inspector.get_columns(table.name)
                if "computed" not in column and column["name"] != "sequence"
            ),
        )
        for table in metadata.sorted_tables
        if inspector.has_table(table.name)
    ]


def _read_rows(connection: Connection, table: Table) -> Sequence[Mapping[Any, Any]]:
    return connection.execute(table.select()).mappings().all()


def _kill_until_done(node: ServiceNode) -> int:
    """Number of killed migrations. Raises AssertionError if one ends otherwise, or the last one fails."""
    killed = 0
    for number, change in enumerate(_KILLED_STATEMENTS):
        at_work = _WORK_SECONDS * (number % 2)
        dying = [sys.executable, "-c", _DYING_PROGRAM, str(change), str(at_work), "migrate", "-c", str(node.ini)]
        done = subprocess.run(
            dying, check=False, capture_output=True, text=True, cwd=ROOT, env=node.environment, timeout=120
        )
        if not done.returncode:
            break
        if done.returncode != -signal.SIGKILL:
            raise AssertionError(f"the migration does not go on: {done.stderr[-500:]}")
        killed += 1
    node.run_command("migrate")
    return killed


MIGRATION_FAULTS = (
    KilledMigrationFault("migration", "migrations of a filled database are killed half-way, and go on"),
)
