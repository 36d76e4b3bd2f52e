import sys
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest

from identity.plugin_host import ENTRY_POINT_GROUP
from tests.house.plugins import Install

# Run with settings of their own: by test_sample_plugin, which installs it, and by test_added_field.
collect_ignore = ["sample_plugin", "added_field"]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """``install(name=Class)`` makes these plugins the installed ones."""
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
