"""Migrations of a filled database that are killed at any of their statements, again and again, until one is through."""

import signal
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Connection, MetaData, Table, inspect, text

from benchmarks.service import ROOT
from faults.client import Client, Tally
from faults.databases import Database
from faults.ledger import Ledger, NoAnswer, Verdict
from faults.load import Codes, Management, Revocations, Rotations, Tokens
from faults.nodes import Node, Nodes, placed
from faults.of_databases import expired_tokens
from faults.scene import Fault, Report
from faults.stock import prepared
from faults.storages import opened
from identity.plugins.sql import Settings
from identity.plugins.sql.engines import open_migrating_engine
from identity.plugins.sql.migrations.runner import upgrade
from identity.plugins.sql.tables import metadata

#: How often each lane writes down what must be there after the migration.
_STEPS = 12
#: With so many expired tokens besides, whole tables take a while.
_FILLED = 20_000
#: The revision that it begins with: MariaDB's first, and the first that knows each value of now.
_OLD = {"sqlite": "0004", "postgresql": "0004", "mariadb": "0008"}
#: Killed at so many changes from the beginning, one attempt after the other: where all is one transaction, each begins
#: anew, and where none is, each goes on. At every second of them the database is at work on it, for so many seconds.
_AT = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89)
_AT_WORK = 0.01
#: The command `identity migrate`, which ends itself like that.
_DYING = """
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
class Killed:
    """A fault that has a database of its own, and no load: nothing serves before its migration is through."""

    name: str
    title: str
    storages: Collection[str] = ("sqlite", "postgresql", "mariadb")

    def run(self, storage: str, folder: Path) -> Report:
        """What came of it."""
        fault = Fault(self.name, self.title, lambda scene: None)
        try:
            with opened(storage, folder) as database, placed(folder, database, 1, {}) as nodes:
                killed, verdict = self._tried(database, nodes)
        except (AssertionError, NoAnswer) as problem:
            return Report(fault, storage, offences=[str(problem)])
        offences = [] if killed > 1 else [f"{killed} migrations were killed: others were over before"]
        return Report(
            fault,
            storage,
            requests=killed,
            checked=verdict.checked,
            lost=verdict.lost,
            doubled=verdict.doubled,
            offences=offences,
        )

    def _tried(self, database: Database, nodes: Nodes) -> tuple[int, Verdict]:
        """How many were killed, and what the ledger says after the last one."""
        stock = prepared(nodes[0].ini)
        nodes.start()
        ledger, tally = Ledger(), Tally()
        with closing(Client(nodes.ports, nodes.host, tally)) as client:
            lanes = [kind(stock, client, ledger) for kind in (Tokens, Rotations, Codes, Revocations, Management)]
            for lane in lanes * _STEPS:
                lane.step()
            if tally.offences:
                raise AssertionError(str(tally.offences))
            nodes[0].terminate()
            _make_old(database.url or f"sqlite:///{nodes[0].ini.parent}/data/identity.sqlite", _OLD[database.name])
            expired_tokens(database, _FILLED)
            killed = _killed_until_through(nodes[0])
            nodes.start()
            client.close()
            return killed, ledger.judge(stock, client)


#: How all that is there goes.
_EMPTY = {
    "postgresql": ("DROP SCHEMA public CASCADE", "CREATE SCHEMA public"),
    "mariadb": ("SET FOREIGN_KEY_CHECKS = 0",),
}


def _make_old(url: str, revision: str) -> None:
    """Let the database have the schema of this revision, and of its rows what that knows."""
    engine = open_migrating_engine(Settings(url=url))
    try:
        with engine.connect() as connection:
            rows = {table.name: _rows(connection, table) for table in _tables(connection)}
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
            for table in _tables(connection):
                known = [{column.name: row[column.name] for column in table.columns} for row in rows[table.name]]
                if known:
                    connection.execute(table.insert(), known)
    finally:
        engine.dispose()


def _tables(connection: Connection) -> Sequence[Table]:
    """Those that are there, with the columns that are written to, in an order in which none refers to a later one."""
    there = inspect(connection)
    return [
        Table(
            one.name,
            MetaData(),
            *(
                Column(column["name"], column["type"])
                for column in there.get_columns(one.name)
                if "computed" not in column and column["name"] != "sequence"
            ),
        )
        for one in metadata.sorted_tables
        if there.has_table(one.name)
    ]


def _rows(connection: Connection, table: Table) -> Sequence[Mapping[Any, Any]]:
    return connection.execute(table.select()).mappings().all()


def _killed_until_through(node: Node) -> int:
    """How many migrations were killed. Raises AssertionError if one ends in another way, or the last one fails."""
    killed = 0
    for number, change in enumerate(_AT):
        at_work = _AT_WORK * (number % 2)
        dying = [sys.executable, "-c", _DYING, str(change), str(at_work), "migrate", "-c", str(node.ini)]
        done = subprocess.run(
            dying, check=False, capture_output=True, text=True, cwd=ROOT, env=node.environment, timeout=120
        )
        if not done.returncode:
            break
        if done.returncode != -signal.SIGKILL:
            raise AssertionError(f"the migration does not go on: {done.stderr[-500:]}")
        killed += 1
    node.run("migrate")
    return killed


MIGRATIONS = (Killed("migration", "migrations of a filled database are killed half-way, and go on"),)
