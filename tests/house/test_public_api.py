"""The public names: there, documented, and all that plugins need."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

from identity.api import PUBLIC_MODULES, is_public

ROOT = Path(__file__).parents[2]
PLUGINS = ROOT / "identity" / "plugins"
SAMPLE = Path(__file__).parent / "sample_plugin"
MODULE_NAMES = [module for family in PUBLIC_MODULES.values() for module in family]

#: Storages are written against the contract in identity.storage; the default one is part of the service.
OF_THE_SERVICE = "sql"


def imported(path: Path) -> Iterator[str]:
    """The modules of the service that a file imports; private names in full."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            for name in node.names:
                whole = f"{node.module}.{name.name}"
                is_module = (ROOT / Path(*whole.split("."))).with_suffix(".py").exists()
                private = name.name.startswith("_") and not name.name.startswith("__")
                yield whole if is_module or private else node.module


def foreign(path: Path, own_package: str) -> set[str]:
    """The modules of the service that a file imports beyond its own plugin."""
    ours = {name for name in imported(path) if name.partition(".")[0] == "identity"}
    return {name for name in ours if name != own_package and not name.startswith(f"{own_package}.")}


def plugin_files() -> Iterator[tuple[str, Path]]:
    for path in sorted(PLUGINS.rglob("*.py")):
        name = path.relative_to(PLUGINS).parts[0].removesuffix(".py")
        if name not in (OF_THE_SERVICE, "__init__"):
            yield name, path


def test_default_plugins_live_from_public_names() -> None:
    for name, path in plugin_files():
        assert {item for item in foreign(path, f"identity.plugins.{name}") if not is_public(item)} == set(), path


def test_sample_plugin_imports_only_the_public_api() -> None:
    for path in SAMPLE.rglob("*.py"):
        assert {name for name in foreign(path, "sample_plugin") if not is_public(name)} == set()


def test_public_names_exist_and_have_docstrings() -> None:
    for module in MODULE_NAMES:
        assert importlib.import_module(module).__doc__


def test_each_family_has_its_page() -> None:
    pages = {path.stem for path in (ROOT / "docs" / "reference" / "api").glob("*.rst")}
    assert pages == {"index", *(family.replace(" ", "-") for family in PUBLIC_MODULES)}


def test_names_outside_the_public_api_are_private() -> None:
    for name in (
        "identity.application_factory",
        "identity.application",
        "identity.services.base",
        "identity.provider.token_issuance",
    ):
        assert not is_public(name)
    assert not is_public("identity.domain._hidden")
    assert is_public("identity.domain.users")
