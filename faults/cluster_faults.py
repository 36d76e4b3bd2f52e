"""Faults of one server of a Galera cluster; each process of the service writes to its own server."""

import time
from collections.abc import Callable

from faults.client_faults import race_redemptions
from faults.fault_run import Fault, FaultEnvironment
from faults.galera_database import GaleraDatabase
from faults.http_client import ResponseClass
from faults.node_faults import kill_all
from tests.galera import NODE_COUNT, GaleraCluster

_GALERA = ("galera",)
#: The node that is lost.
_LAST_NODE = NODE_COUNT - 1
_EXPECTED_RESPONSES = (ResponseClass.BUSY, ResponseClass.REFUSED)


def _lose_server(
    begin: Callable[[GaleraCluster], None], end: Callable[[GaleraCluster], None]
) -> Callable[[FaultEnvironment], None]:
    """The others continue without it; the cause ends when it has caught up."""

    def happens(scene: FaultEnvironment) -> None:
        assert isinstance(scene.database, GaleraDatabase)  # noqa: S101 - the fault says so
        cluster = scene.database.cluster
        begin(cluster)
        cluster.wait_for_size(NODE_COUNT - 1)
        time.sleep(scene.fault_seconds)
        end(cluster)
        for at in range(NODE_COUNT):
            cluster.wait_for_size(NODE_COUNT, at)

    return happens


CLUSTER_FAULTS = (
    Fault(
        "kill-all",
        "kill -9 of all processes",
        kill_all,
        _GALERA,
        expected_classes=_EXPECTED_RESPONSES,
        kills_processes=True,
        starts_nodes=True,
        nodes=NODE_COUNT,
    ),
    Fault(
        "redemptions",
        "100 at one moment show one code, and one refresh token",
        race_redemptions,
        _GALERA,
        nodes=NODE_COUNT,
    ),
    Fault(
        "server-killed",
        "kill -9 of one of three database servers",
        _lose_server(
            lambda cluster: cluster.nodes[_LAST_NODE].kill(), lambda cluster: cluster.nodes[_LAST_NODE].start()
        ),
        _GALERA,
        expected_classes=_EXPECTED_RESPONSES,
        nodes=NODE_COUNT,
    ),
    Fault(
        "server-frozen",
        "one of three database servers does nothing (SIGSTOP)",
        _lose_server(lambda cluster: cluster.suspend_node(_LAST_NODE), lambda cluster: cluster.resume_node(_LAST_NODE)),
        _GALERA,
        expected_classes=_EXPECTED_RESPONSES,
        nodes=NODE_COUNT,
    ),
    Fault(
        "server-cut-off",
        "one of three database servers is cut off from the others",
        _lose_server(
            lambda cluster: cluster.isolate_node(_LAST_NODE),
            lambda cluster: cluster.isolate_node(_LAST_NODE, off=False),
        ),
        _GALERA,
        expected_classes=_EXPECTED_RESPONSES,
        nodes=NODE_COUNT,
    ),
)
