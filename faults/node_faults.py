"""Faults of the service's processes."""

import signal
import time
from collections.abc import Sequence

import psutil  # type: ignore[import-untyped]

from faults.fault_run import Fault, FaultEnvironment
from faults.http_client import ResponseClass
from faults.service_nodes import MASTER_KEY_FILE


def _kill_one(scene: FaultEnvironment) -> None:
    scene.nodes[0].kill()
    time.sleep(scene.fault_seconds)
    scene.nodes[0].start()


def kill_all(scene: FaultEnvironment) -> None:
    """Kill all at once, under load."""
    for node in scene.nodes:
        node.kill()
    time.sleep(scene.fault_seconds / 2)
    for node in scene.nodes:
        node.start()


def _terminate_one(scene: FaultEnvironment) -> None:
    scene.nodes[0].terminate()
    time.sleep(scene.fault_seconds)
    scene.nodes[0].start()


def _kill_repeatedly(scene: FaultEnvironment) -> None:
    for turn in range(2):
        node = scene.nodes[turn % len(scene.nodes)]
        node.kill()
        node.start()
        node.wait_until_serving()


def _remove_master_key(scene: FaultEnvironment) -> None:
    """A running node continues; a restarted one refuses to start until the file is back."""
    folder = scene.nodes[0].ini.parent
    key, moved_key = folder / MASTER_KEY_FILE, folder / "master.key.elsewhere"
    key.rename(moved_key)
    try:
        scene.nodes[1].terminate()
        scene.nodes[1].start()
        ended = scene.nodes[1].wait()
    finally:
        moved_key.rename(key)
    if not ended:
        raise AssertionError("a node has started without its master key")
    scene.nodes[1].start()


def _kill_processes(processes: Sequence[psutil.Process]) -> None:
    """Kill processes that others have started. Raises AssertionError if they do not end."""
    for process in processes:
        process.kill()
    _, alive = psutil.wait_procs(processes, timeout=10)
    if alive:
        raise AssertionError(f"there still are {alive}")


def _kill_worker(scene: FaultEnvironment) -> None:
    _kill_processes(scene.nodes[0].workers[:1])


def _kill_workers(scene: FaultEnvironment) -> None:
    _kill_processes(scene.nodes[0].workers)


def _wait_for_workers(scene: FaultEnvironment) -> None:
    scene.nodes[0].wait_for_workers()


def _reload(scene: FaultEnvironment) -> None:
    node = scene.nodes[0]
    before = node.workers
    node.send_signal(signal.SIGHUP)
    node.wait_for_workers(excluded=before)


_REFUSED = (ResponseClass.REFUSED,)

NODE_FAULTS = (
    Fault(
        "kill-one",
        "kill -9 of one of two processes",
        _kill_one,
        expected_classes=_REFUSED,
        kills_processes=True,
        starts_nodes=True,
    ),
    Fault(
        "kill-all",
        "kill -9 of all processes",
        kill_all,
        expected_classes=_REFUSED,
        kills_processes=True,
        starts_nodes=True,
        is_quick_on_all_storages=True,
    ),
    Fault(
        "kill-often",
        "kill -9 of one after the other",
        _kill_repeatedly,
        expected_classes=_REFUSED,
        kills_processes=True,
        starts_nodes=True,
    ),
    Fault("terminate", "SIGTERM to one of two processes", _terminate_one, expected_classes=_REFUSED, starts_nodes=True),
    Fault(
        "no-master-key",
        "the master key's file is gone, and a process restarted",
        _remove_master_key,
        expected_classes=_REFUSED,
        starts_nodes=True,
    ),
    Fault(
        "worker",
        "kill -9 of one of two workers",
        _kill_worker,
        wait_until_restored=_wait_for_workers,
        kills_processes=True,
        nodes=1,
        workers=2,
    ),
    Fault(
        "workers",
        "kill -9 of all workers",
        _kill_workers,
        wait_until_restored=_wait_for_workers,
        expected_classes=_REFUSED,
        kills_processes=True,
        nodes=1,
        workers=2,
    ),
    Fault("reload", "SIGHUP: new workers take over", _reload, is_quiet=True, nodes=1, workers=2),
)
