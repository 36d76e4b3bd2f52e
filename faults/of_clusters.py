"""What happens to one server of a cluster, each of which takes writes of a process of its own."""

import time
from collections.abc import Callable

from faults.client import Kind
from faults.galera import Galera
from faults.of_clients import redemptions
from faults.of_nodes import all_killed
from faults.scene import Fault, Scene
from identity.testing.galera import NODES, Cluster

_GALERA = ("galera",)
#: The one that it happens to.
_LAST = NODES - 1
_NOTICED = (Kind.BUSY, Kind.REFUSED)


def _lost(begin: Callable[[Cluster], None], end: Callable[[Cluster], None]) -> Callable[[Scene], None]:
    """One is gone for the others, which go on; its cause has ended when it has what it missed."""

    def happens(scene: Scene) -> None:
        assert isinstance(scene.database, Galera)  # noqa: S101 - the fault says so
        cluster = scene.database.cluster
        begin(cluster)
        cluster.wait_for(NODES - 1)
        time.sleep(scene.span)
        end(cluster)
        for at in range(NODES):
            cluster.wait_for(NODES, at)

    return happens


CLUSTERS = (
    Fault(
        "kill-all",
        "kill -9 of all processes",
        all_killed,
        _GALERA,
        bites=_NOTICED,
        kills=True,
        starts_nodes=True,
        nodes=NODES,
    ),
    Fault("redemptions", "100 at one moment show one code, and one refresh token", redemptions, _GALERA, nodes=NODES),
    Fault(
        "server-killed",
        "kill -9 of one of three database servers",
        _lost(lambda cluster: cluster.nodes[_LAST].kill(), lambda cluster: cluster.nodes[_LAST].start()),
        _GALERA,
        bites=_NOTICED,
        nodes=NODES,
    ),
    Fault(
        "server-frozen",
        "one of three database servers does nothing (SIGSTOP)",
        _lost(lambda cluster: cluster.freeze(_LAST), lambda cluster: cluster.thaw(_LAST)),
        _GALERA,
        bites=_NOTICED,
        nodes=NODES,
    ),
    Fault(
        "server-cut-off",
        "one of three database servers is cut off from the others",
        _lost(lambda cluster: cluster.cut_off(_LAST), lambda cluster: cluster.cut_off(_LAST, off=False)),
        _GALERA,
        bites=_NOTICED,
        nodes=NODES,
    ),
)
