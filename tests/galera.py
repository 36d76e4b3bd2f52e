"""A Galera cluster for tests: three MariaDB servers that all accept writes."""

import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pymysql

from identity.testing.mariadb import MariadbServer, find_program, new_database

NODE_COUNT = 3
PROVIDER_LIBRARY = Path("/usr/lib/galera/libgalera_smm.so")
_ROOM = Path("/dev/shm")  # noqa: S108
_PATIENCE = 120
#: Data survives on the other nodes, so none waits for its disk.
_OPTIONS = (
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-buffer-pool-size=64M",
    "--innodb-log-file-size=48M",
    "--innodb-autoinc-lock-mode=2",
    "--binlog-format=ROW",
    "--max-connections=500",
    "--performance-schema=OFF",
    "--bind-address=127.0.0.1",
    "--wsrep-on=ON",
    f"--wsrep-provider={PROVIDER_LIBRARY}",
    "--wsrep-cluster-name=identity",
    "--wsrep-sync-wait=7",
    "--wsrep-sst-method=rsync",
)


def missing_requirement() -> str | None:
    """A sentence that names what is not installed; None if everything is."""
    for name in ("mariadbd", "rsync"):
        if find_program(name) is None:
            return f"there is no {name}"
    return None if PROVIDER_LIBRARY.exists() else "there is no Galera"


class GaleraCluster:
    """Three nodes on loopback; the first one bootstraps the cluster, and the others copy its data."""

    def __init__(self, folder: Path) -> None:
        ports = [[_free_port() for _ in range(4)] for _ in range(NODE_COUNT)]
        self._addresses = ",".join(f"127.0.0.1:{group}" for _, group, *_ in ports)
        self.nodes = [MariadbServer(folder / str(at), self._options(at, *item)) for at, item in enumerate(ports)]
        try:
            self.nodes[0].start("--wsrep-new-cluster")
            for node in self.nodes[1:]:
                node.start()
            self.wait_for_size(NODE_COUNT)
        except BaseException:
            self.close()
            raise

    def _options(self, at: int, port: int, group: int, transfer: int, state: int) -> tuple[str, ...]:
        provider = f"base_port={group};ist.recv_addr=127.0.0.1:{transfer};gcache.size=32M;pc.recovery=no"
        # Exclude silent nodes quickly.
        provider += ";evs.suspect_timeout=PT2S;evs.inactive_timeout=PT5S;evs.keepalive_period=PT0.5S"
        return (
            *_OPTIONS,
            f"--port={port}",
            f"--wsrep-node-name=node{at}",
            f"--wsrep-node-address=127.0.0.1:{group}",
            f"--wsrep-sst-receive-address=127.0.0.1:{state}",
            f"--wsrep-cluster-address=gcomm://{self._addresses}",
            f"--wsrep-provider-options={provider};gmcast.listen_addr=tcp://127.0.0.1:{group}",
        )

    def new_database(self) -> tuple[str, ...]:
        """An empty database: its URL on each node."""
        name = new_database(self.nodes[0]).partition("?")[0].rpartition("/")[2]
        for node in self.nodes[1:]:
            # Waits until the node has caught up: connecting does not.
            node.execute("SELECT 1 FROM information_schema.tables")
        return tuple(node.url(name) for node in self.nodes)

    def wait_for_size(self, size: int, at: int = 0) -> None:
        """Wait until this node sees this many nodes, including itself, and accepts writes. Raises TimeoutError."""
        give_up_at = time.monotonic() + _PATIENCE
        while self._cluster_state(at) != (str(size), "ON"):
            if time.monotonic() > give_up_at:
                raise TimeoutError(f"node {at} does not see {size}")
            time.sleep(0.1)

    def suspend_node(self, node: int) -> None:
        """Suspend the processes of a node."""
        os.kill(self.nodes[node].process_id, signal.SIGSTOP)

    def resume_node(self, at: int) -> None:
        """Inverse of ``suspend_node``."""
        os.kill(self.nodes[at].process_id, signal.SIGCONT)

    def isolate_node(self, at: int, *, off: bool = True) -> None:
        """Isolate a node from the others, or reconnect it."""
        self.nodes[at].execute(f"SET GLOBAL wsrep_provider_options = 'gmcast.isolate={int(off)}'")

    def close(self) -> None:
        for node in self.nodes:
            node.close()

    def _cluster_state(self, at: int) -> tuple[str, str]:
        with suppress(pymysql.Error):
            rows = dict(self.nodes[at].execute("SHOW STATUS LIKE 'wsrep%'"))
            return rows["wsrep_cluster_size"], rows["wsrep_ready"]
        return "", ""


@contextmanager
def running_cluster() -> Iterator[GaleraCluster]:
    """A new cluster; stopped and deleted at the end."""
    folder = Path(tempfile.mkdtemp(prefix="identity-galera-", dir=_ROOM if _ROOM.is_dir() else None))
    # Nodes run as the user of MariaDB's package.
    folder.chmod(0o755)
    try:
        cluster = GaleraCluster(folder)
        try:
            yield cluster
        finally:
            cluster.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
