"""Every default plugin, found by its entry point, passes the contract."""

from importlib.metadata import distribution

from identity.plugin_host import ENTRY_POINT_GROUP
from identity.testing.plugin_contract import PluginContract

#: The required settings of plugins.
SETTINGS = {"sql": {"url": "sqlite:///identity.sqlite"}}

for _name in sorted(distribution("identity-iam").entry_points.select(group=ENTRY_POINT_GROUP).names):
    _members = {"name": _name, "settings": SETTINGS.get(_name, {})}
    globals()[f"Test_{_name}"] = type(f"Test_{_name}", (PluginContract,), _members)


def test_default_plugins_are_found() -> None:
    assert {"Test_sql", "Test_login", "Test_jwt_bearer"} <= globals().keys()
