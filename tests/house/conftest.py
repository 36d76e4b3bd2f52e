import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from identity.plugin_host import ENTRY_POINT_GROUP, installed_plugins
from identity.testing.assembled_service import DEFAULT_PLUGINS
from tests.house.plugin_fixtures import Install, SamplePlugins
from tests.house.service_processes import Pserve, ServiceProcess, free_port

# These need settings of their own: test_sample_plugin installs and runs the one, test_added_field runs the other.
collect_ignore = ["sample_plugin", "added_field"]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """``install(name=Class)`` replaces the installed plugins with these."""
    module = ModuleType("plugins_of_a_test")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    points: list[EntryPoint] = []
    monkeypatch.setattr("identity.plugin_host.entry_points", lambda group: list(points))

    def install(**plugins: Any) -> None:
        for name, kind in plugins.items():
            if not isinstance(kind, str):
                setattr(module, name, kind)
                kind = f"{module.__name__}:{name}"
            points.append(EntryPoint(name, kind, ENTRY_POINT_GROUP))

    return install


@pytest.fixture
def sample_plugins(monkeypatch: pytest.MonkeyPatch, storage_name: str) -> SamplePlugins:
    """``sample_plugins("pin")`` installs the class whose name ends in Plugin from the module of this name."""
    points = list(installed_plugins().values())
    monkeypatch.setattr("identity.plugin_host.entry_points", lambda group: list(points))

    def install(*names: str) -> str:
        for name in names:
            module = import_module(f"tests.house.sample_plugins.{name}")
            (kind,) = (item for item in vars(module) if item.endswith("Plugin"))
            points.append(EntryPoint(name, f"{module.__name__}:{kind}", ENTRY_POINT_GROUP))
        return " ".join(("memory" if storage_name == "memory" else "sql", DEFAULT_PLUGINS, *names))

    return install


@pytest.fixture
def pserve(tmp_path: Path) -> Iterator[Pserve]:
    """Start `pserve INI NAME=VALUE …`; returns once it responds or has ended."""
    yield from _starting([sys.executable, "-m", "pyramid.scripts.pserve"], tmp_path)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Pserve]:
    """Start `identity serve -c INI NAME=VALUE …`; returns once it responds or has ended."""
    yield from _starting([str(Path(sys.executable).with_name("identity")), "serve", "-c"], tmp_path)


def _starting(program: list[str], folder: Path) -> Iterator[Pserve]:
    started: list[ServiceProcess] = []

    def start(ini: Path, *, port: int | None = None, **variables: object) -> ServiceProcess:
        port = port or free_port()
        log = folder / f"log-{program[-1].strip('-')}-{len(started)}"
        command = [*program, str(ini), f"http_port={port}", *(f"{name}={value}" for name, value in variables.items())]
        with log.open("w") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, text=True, cwd=folder)
        started.append(ServiceProcess(process, port, log))
        return started[-1].wait()

    yield start
    for served in started:
        served.stop()
