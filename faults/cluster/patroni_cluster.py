"""Three PostgreSQL servers under Patroni and etcd, behind HAProxy, which knows primary and standbys."""

import json
import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from faults.cluster.network_namespaces import NamespaceMachine, create_machines
from faults.database import FaultDatabase, FaultUnavailable

NAMES = ("one", "two", "three")
#: Seconds of silence until Patroni considers a server dead, and between its checks: a lost primary is replaced after
#: their sum.
PATRONI_TTL, PATRONI_LOOP_WAIT = 20, 5
_SYSTEM_USER = "postgres"
_PG_HBA_DATABASES = ("all", "replication")
_TIMEOUT_SECONDS = 90.0
#: Seconds that introspection may lag: longer than a disconnected primary is away.
_STALENESS = 45

_HAPROXY = """
global
    maxconn 1000

defaults
    mode tcp
    timeout connect 2s
    timeout client 30m
    timeout server 30m
    timeout check 2s

listen primary
    bind unix@{socket} mode 777
    option httpchk OPTIONS /primary
    http-check expect status 200
    default-server inter 1s fastinter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
{servers}

listen standby
    bind unix@{standby} mode 777
    balance leastconn
    option httpchk OPTIONS /replica?lag=1MB
    http-check expect status 200
    default-server inter 1s fastinter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
{servers}
"""


class ClusterTimeout(Exception):
    """The cluster does not reach the expected state."""


class PatroniCluster(FaultDatabase):
    """The cluster. The service reaches the primary and its standbys through HAProxy's sockets."""

    name = "patroni"
    staleness = _STALENESS

    def __init__(self, folder: Path, present: Mapping[str, NamespaceMachine]) -> None:
        super().__init__(folder)
        self._machines = {name: present[name] for name in NAMES}
        self._switch = present["switch"]
        self.url = f"postgresql://{_SYSTEM_USER}@/identity?host={folder}"
        self.settings = {
            "identity.plugin.sql.standby_url": f"{self.url}&port=5433",
            "identity.plugin.sql.standby_staleness": f"{_STALENESS}s",
        }
        #: Seconds that Patroni took for the last failover.
        self.start_seconds = 0.0

    def start(self) -> None:
        """Wait until there are a primary, a synchronous standby and a database. Raises ClusterTimeout."""
        for name in NAMES:
            self.start_machine(name)
        servers = "\n".join(
            f"    server {name} {machine.address}:5432 check port 8008" for name, machine in self._machines.items()
        )
        configuration = self.folder / "haproxy.cfg"
        primary, standby = (self.folder / f".s.PGSQL.{port}" for port in (5432, 5433))
        configuration.write_text(_HAPROXY.format(socket=primary, standby=standby, servers=servers))
        self._switch.start([_find_program("haproxy"), "-db", "-f", str(configuration)])
        self.wait_until_healthy()
        self._create_database()

    def start_machine(self, name: str) -> None:
        """Start all programs of a machine."""
        machine = self._machines[name]
        peers = ",".join(
            f"{item}=http://{namespace_machine.address}:2380" for item, namespace_machine in self._machines.items()
        )
        data = machine.folder / "etcd"
        etcd = {
            "--name": name,
            "--data-dir": str(data),
            "--initial-cluster": peers,
            "--initial-advertise-peer-urls": f"http://{machine.address}:2380",
            "--listen-peer-urls": f"http://{machine.address}:2380",
            "--listen-client-urls": f"http://{machine.address}:2379",
            "--advertise-client-urls": f"http://{machine.address}:2379",
            "--heartbeat-interval": "300",
            "--election-timeout": "3000",
        }
        machine.start([_find_program("etcd"), *(argument for pair in etcd.items() for argument in pair)])
        configuration = machine.folder / "patroni.json"
        configuration.write_text(json.dumps(self._patroni_config(name)))
        owner = pwd.getpwnam(_SYSTEM_USER)
        os.chown(machine.folder, owner.pw_uid, owner.pw_gid)
        machine.start([_find_program("patroni"), str(configuration)], user=_SYSTEM_USER, HOME=str(machine.folder))

    def primary(self) -> str | None:
        """The machine that is primary according to HAProxy's check."""
        return next((name for name in NAMES if self._has_role(name, "primary")), None)

    def synchronous_standby(self) -> str | None:
        """The standby that has everything acknowledged."""
        return next((name for name in NAMES if self._has_role(name, "synchronous")), None)

    def machine(self, name: str) -> NamespaceMachine:
        return self._machines[name]

    def wait_for_primary(self, *, other_than: str) -> None:
        """Wait until another machine is the primary. Raises ClusterTimeout."""
        began = time.monotonic()
        self._wait_until(lambda: self.primary() not in (None, other_than), "another primary")
        self.start_seconds = time.monotonic() - began

    def wait_until_healthy(self) -> None:
        """Wait until there are a primary, a synchronous standby, and another standby. Raises ClusterTimeout."""

        def is_whole() -> bool:
            replicas = [name for name in NAMES if self._has_role(name, "replica?lag=1MB")]
            return self.primary() is not None and self.synchronous_standby() is not None and len(replicas) == 2

        self._wait_until(is_whole, "a primary and two standbys")

    def switch_over(self) -> None:
        """Switch over to the synchronous standby, as an operator would. Raises ClusterTimeout."""
        leader, candidate = self.primary(), self.synchronous_standby()
        body = json.dumps({"leader": leader, "candidate": candidate})
        began = time.monotonic()
        self._request_status(f"http://{self._machines[leader or NAMES[0]].address}:8008/switchover", "-d", body)
        self.wait_for_primary(other_than=leader or "")
        self.start_seconds = time.monotonic() - began

    def _wait_until(self, is_so: Any, description: str) -> None:
        give_up_at = time.monotonic() + _TIMEOUT_SECONDS
        while not is_so():
            if time.monotonic() > give_up_at:
                logs = [
                    (namespace_machine.folder / "patroni.log").read_text()[-1500:]
                    for namespace_machine in self._machines.values()
                ]
                raise ClusterTimeout("\n".join([f"there is no {description} after {_TIMEOUT_SECONDS:.0f} s", *logs]))
            time.sleep(0.2)

    def _has_role(self, name: str, role: str) -> bool:
        return self._request_status(f"http://{self._machines[name].address}:8008/{role}", "-X", "OPTIONS") == "200"

    def _request_status(self, url: str, *arguments: str) -> str:
        """The response status, requested from the switch."""
        command = ["curl", "-s", "-o", "/dev/null", "-m", "30" if arguments[0] == "-d" else "1", "-w", "%{http_code}"]
        asking = ["ip", "netns", "exec", self._switch.space, *command, *arguments, url]
        return subprocess.run(asking, check=False, capture_output=True, text=True).stdout

    def _create_database(self) -> None:
        give_up_at = time.monotonic() + _TIMEOUT_SECONDS
        while True:
            try:
                with psycopg.connect(
                    f"postgresql://{_SYSTEM_USER}@/postgres?host={self.folder}", autocommit=True
                ) as connection:
                    connection.execute("CREATE DATABASE identity")
            except psycopg.OperationalError:
                if time.monotonic() > give_up_at:
                    raise
                time.sleep(0.5)
            else:
                return

    def _patroni_config(self, name: str) -> Mapping[str, Any]:
        address = self._machines[name].address
        return {
            "scope": "identity",
            "name": name,
            "restapi": {"listen": f"{address}:8008", "connect_address": f"{address}:8008"},
            "etcd3": {"hosts": [f"{namespace_machine.address}:2379" for namespace_machine in self._machines.values()]},
            "bootstrap": {
                "dcs": {
                    "ttl": PATRONI_TTL,
                    "loop_wait": PATRONI_LOOP_WAIT,
                    "retry_timeout": PATRONI_LOOP_WAIT,
                    "maximum_lag_on_failover": 1048576,
                    "primary_start_timeout": 0,
                    "synchronous_mode": True,
                    "postgresql": {
                        "use_pg_rewind": True,
                        "parameters": {"wal_log_hints": "on", "max_connections": 200},
                    },
                },
                "initdb": [{"encoding": "UTF8"}, "data-checksums"],
            },
            "postgresql": {
                "listen": f"{address}:5432",
                "connect_address": f"{address}:5432",
                "pgpass": str(self._machines[name].folder / "pgpass"),
                "data_dir": str(self._machines[name].folder / "data"),
                "bin_dir": str(_find_postgresql_binaries()),
                "remove_data_directory_on_rewind_failure": True,
                "remove_data_directory_on_diverged_timelines": True,
                "authentication": {
                    "superuser": {"username": _SYSTEM_USER},
                    "replication": {"username": "replicator"},
                    "rewind": {"username": _SYSTEM_USER},
                },
                "parameters": {"unix_socket_directories": str(self._machines[name].folder)},
                "pg_hba": [
                    "local all all trust",
                    *(f"host {pg_hba_database} all 10.213.77.0/24 trust" for pg_hba_database in _PG_HBA_DATABASES),
                ],
            },
        }


@contextmanager
def create_cluster(folder: Path) -> Iterator[PatroniCluster]:
    """A new cluster, deleted afterwards. Raises FaultUnavailable, ClusterTimeout."""
    for name in ("etcd", "patroni", "haproxy", "curl", "setpriv", "ip"):
        _find_program(name)
    with create_machines(NAMES, folder) as present:
        cluster = PatroniCluster(folder, present)
        cluster.start()
        yield cluster


def _find_program(name: str) -> str:
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if found is None:
        raise FaultUnavailable(f"{name} is not installed")
    return found


def _find_postgresql_binaries() -> Path:
    paths = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_rewind"))
    if not paths:
        raise FaultUnavailable("PostgreSQL is not installed as Debian has it")
    return paths[-1].parent
