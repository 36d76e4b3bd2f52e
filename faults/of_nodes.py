"""What happens to the processes of the service."""

import signal
import time
from collections.abc import Sequence

import psutil  # type: ignore[import-untyped]

from faults.client import Kind
from faults.nodes import MASTER_KEY
from faults.scene import Fault, Scene


def _one_killed(scene: Scene) -> None:
    scene.nodes[0].kill()
    time.sleep(scene.span)
    scene.nodes[0].start()


def all_killed(scene: Scene) -> None:
    """All at once, under load."""
    for node in scene.nodes:
        node.kill()
    time.sleep(scene.span / 2)
    for node in scene.nodes:
        node.start()


def _terminated(scene: Scene) -> None:
    scene.nodes[0].terminate()
    time.sleep(scene.span)
    scene.nodes[0].start()


def _killed_again_and_again(scene: Scene) -> None:
    for turn in range(2):
        node = scene.nodes[turn % len(scene.nodes)]
        node.kill()
        node.start()
        node.wait_until_serving()


def _master_key_gone(scene: Scene) -> None:
    """A node that runs goes on; one that is started refuses, and starts when the file is back."""
    folder = scene.nodes[0].ini.parent
    key, elsewhere = folder / MASTER_KEY, folder / "master.key.elsewhere"
    key.rename(elsewhere)
    try:
        scene.nodes[1].terminate()
        scene.nodes[1].start()
        ended = scene.nodes[1].wait()
    finally:
        elsewhere.rename(key)
    if not ended:
        raise AssertionError("a node has started without its master key")
    scene.nodes[1].start()


def _kill(processes: Sequence[psutil.Process]) -> None:
    """End processes that others have started. Raises AssertionError if they do not end."""
    for process in processes:
        process.kill()
    _, alive = psutil.wait_procs(processes, timeout=10)
    if alive:
        raise AssertionError(f"there still are {alive}")


def _worker_killed(scene: Scene) -> None:
    _kill(scene.nodes[0].workers[:1])


def _workers_killed(scene: Scene) -> None:
    _kill(scene.nodes[0].workers)


def _has_workers(scene: Scene) -> None:
    scene.nodes[0].wait_for_workers()


def _reloaded(scene: Scene) -> None:
    node = scene.nodes[0]
    before = node.workers
    node.send(signal.SIGHUP)
    node.wait_for_workers(without=before)


_REFUSED = (Kind.REFUSED,)

NODES = (
    Fault("kill-one", "kill -9 of one of two processes", _one_killed, bites=_REFUSED, kills=True, starts_nodes=True),
    Fault(
        "kill-all",
        "kill -9 of all processes",
        all_killed,
        bites=_REFUSED,
        kills=True,
        starts_nodes=True,
        everywhere=True,
    ),
    Fault(
        "kill-often",
        "kill -9 of one after the other",
        _killed_again_and_again,
        bites=_REFUSED,
        kills=True,
        starts_nodes=True,
    ),
    Fault("terminate", "SIGTERM to one of two processes", _terminated, bites=_REFUSED, starts_nodes=True),
    Fault(
        "no-master-key",
        "the master key's file is gone, and a process restarted",
        _master_key_gone,
        bites=_REFUSED,
        starts_nodes=True,
    ),
    Fault(
        "worker",
        "kill -9 of one of two workers",
        _worker_killed,
        restored=_has_workers,
        kills=True,
        nodes=1,
        workers=2,
    ),
    Fault(
        "workers",
        "kill -9 of all workers",
        _workers_killed,
        restored=_has_workers,
        bites=_REFUSED,
        kills=True,
        nodes=1,
        workers=2,
    ),
    Fault("reload", "SIGHUP: new workers take over", _reloaded, is_quiet=True, nodes=1, workers=2),
)
