"""The public API: few names, all documented, and sufficient for all plugins."""

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import pytest

import identity.api

ROOT = Path(__file__).parents[2]
PLUGINS = ROOT / "identity" / "plugins"
SAMPLES = (Path(__file__).parent / "sample_plugin", Path(__file__).parent / "sample_plugins")
#: Modules of plugins that other plugins may extend.
EXTENSIONS = {"identity.plugins.console.api", "identity.plugins.management.api"}
MODULES = tuple(f"identity.api.{item.name}" for item in iter_modules(identity.api.__path__))
MOST_NAMES = 280

#: Default plugins that are parts of the service, and the internal packages and modules that they may use.
PARTS_OF_THE_SERVICE = {
    "console": (
        "__version__",
        "crypto",
        "domain",
        "http",
        "pages",
        "plugin_summaries",
        "provider",
        "services",
        "storage",
        "system_monitor",
    ),
    "management": (
        "domain",
        "http",
        "pages",
        "plugin_summaries",
        "provider",
        "services",
        "storage",
        "system_monitor",
    ),
    "scim": ("domain", "http", "pages", "provider", "services", "storage"),
    "sql": ("concurrency", "domain", "instrumentation", "storage", "testing", "transaction_manager"),
}


def imported(path: Path) -> set[str]:
    """The modules of the service that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            is_package = node.module in ("identity", "identity.api")
            found |= {f"{node.module}.{name.name}" for name in node.names} if is_package else {node.module}
    return {name for name in found if name.partition(".")[0] == "identity"}


def internal(path: Path, plugin: str) -> set[str]:
    """The imports of a plugin's file that are neither public nor the plugin's own."""
    plugin_module = f"identity.plugins.{plugin}"
    return {
        name
        for name in imported(path) - set(MODULES) - EXTENSIONS
        if name != plugin_module and not name.startswith(f"{plugin_module}.")
    }


def plugin_files() -> Iterator[tuple[str, Path]]:
    for path in sorted(PLUGINS.rglob("*.py")):
        name = path.relative_to(PLUGINS).parts[0].removesuffix(".py")
        if name != "__init__":
            yield name, path


def public_names() -> dict[str, str]:
    """Each public name with its module."""
    return {name: module for module in MODULES for name in import_module(module).__all__}


def test_default_plugins_use_only_public_names() -> None:
    used: dict[str, set[str]] = {}
    for name, path in plugin_files():
        if modules := internal(path, name):
            used.setdefault(name, set()).update(module.split(".")[1] for module in modules)
    assert {name: tuple(sorted(packages)) for name, packages in used.items()} == PARTS_OF_THE_SERVICE


def test_sample_plugins_import_only_public_names() -> None:
    for folder in SAMPLES:
        for path in folder.rglob("*.py"):
            assert imported(path) - set(MODULES) - EXTENSIONS == set(), path


def test_public_names_are_few_and_each_stands_in_one_module() -> None:
    every = [name for module in MODULES for name in import_module(module).__all__]
    assert len(every) == len(set(every)) <= MOST_NAMES
    assert len(MODULES) == 10


@pytest.mark.parametrize("module", MODULES)
def test_public_names_are_values_with_docstrings(module: str) -> None:
    loaded = import_module(module)
    assert loaded.__doc__
    assert loaded.__all__ == sorted(loaded.__all__)
    for name in loaded.__all__:
        value = getattr(loaded, name)
        assert not isinstance(value, ModuleType), name
        if (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__.startswith("identity."):
            assert inspect.getdoc(value), name
