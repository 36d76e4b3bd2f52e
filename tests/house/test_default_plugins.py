"""Every plugin that comes with the service has its tests, under the name of its entry point."""

from importlib.metadata import distribution
from pathlib import Path

from identity.plugin_host import ENTRY_POINT_GROUP

TESTS = Path(__file__).parent.parent / "plugins"


def test_each_default_plugin_passes_the_contract() -> None:
    names = {one.name for one in distribution("identity").entry_points if one.group == ENTRY_POINT_GROUP}
    tested = {
        path.stem.removeprefix("test_") for path in TESTS.glob("test_*.py") if "PluginContract" in path.read_text()
    }
    assert names - tested == set()
