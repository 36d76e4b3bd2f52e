"""Names are the field's terms, class names are unique, and the architecture page names each module."""

import ast
import itertools
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.service_processes import ROOT

#: Verbs, adjectives and pronouns that are no names; refused as a whole name.
REFUSED_NAMES = frozenset(
    """
    asked but by each elsewhere given gone held here kept made of one others own place places said seen shown somebody
    someone something taken tell their theirs there thing things told wanted way ways what who whom whose word words
    """.split()  # noqa: SIM905
)
#: Refused as a part of a name, too.
REFUSED_PARTS = frozenset(
    """
    deed deeds fiber fibers hearsay lazily misfit said somebody someone something thing things told verdict verdicts
    """.split()  # noqa: SIM905
)
ARCHITECTURE_PAGE = "docs/contributors/architecture.rst"
_TREES = ("identity", "benchmarks", "faults", "tests")
#: Migrations never change after their release.
_FROZEN = "identity/plugins/sql/migrations/"
#: Members of published JSON documents.
_JSON_MEMBERS = frozenset({"own", "what", "ways"})
_JSON_FOLDER = "identity/plugins/management/resources/"


def source_paths(tree: str) -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / tree).rglob("*.py"))


#: Paths of the package's modules without ``identity/``.
MODULES = [path.removeprefix("identity/") for path in source_paths("identity") if not path.endswith("__init__.py")]


def defined_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of everything that a module defines: classes, functions, parameters, variables and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def is_refused(name: str) -> bool:
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_").split("_")
    return "_".join(parts) in REFUSED_NAMES or not REFUSED_PARTS.isdisjoint(parts)


def is_allowed(path: str, name: str) -> bool:
    return _FROZEN in path or (path.startswith(_JSON_FOLDER) and name in _JSON_MEMBERS)


@pytest.mark.parametrize("tree", _TREES)
def test_names_are_terms_of_the_field(tree: str) -> None:
    refused = [
        f"{path}:{line}: {name}"
        for path in source_paths(tree)
        for line, name in defined_names(ast.parse((ROOT / path).read_text()))
        if is_refused(name) and not is_allowed(path, name)
    ]
    assert refused + [path for path in source_paths(tree) if is_refused(Path(path).stem)] == []


@pytest.mark.thorough
def test_class_names_are_unique() -> None:
    """Two classes with one name confuse readers. Classes that pytest collects may share a name."""
    paths_by_class = defaultdict(list)
    for path in itertools.chain.from_iterable(map(source_paths, _TREES)):
        for node in ast.parse((ROOT / path).read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("Test"):
                paths_by_class[node.name].append(path)
    assert {name: paths for name, paths in paths_by_class.items() if len(paths) > 1} == {}


def test_architecture_page_names_each_module() -> None:
    """By its path, or by its folder (``folder/*``) if the modules of a folder are alike."""
    named = re.findall(r"``([\w/.*]+)``", (ROOT / ARCHITECTURE_PAGE).read_text())
    assert [path for path in MODULES if path not in named and f"{path.rpartition('/')[0]}/*" not in named] == []


def test_architecture_page_names_only_existing_modules() -> None:
    named = re.findall(r"``([\w/.*]+(?:\.py|/\*))``", (ROOT / ARCHITECTURE_PAGE).read_text())
    folders = {f"{path.rpartition('/')[0]}/*" for path in MODULES}
    existing = {*MODULES, *folders}
    assert [name for name in named if name not in existing and not (ROOT / name).exists()] == []


def test_walks_name_existing_functions() -> None:
    """Steps of the walks read ``file.py: function`` or ``file.py: Class.method``."""
    page = (ROOT / ARCHITECTURE_PAGE).read_text()
    steps = re.findall(r"``([\w/]+\.py): ([\w.]+)``", page)
    assert len(steps) > 40
    assert [f"{path}: {name}" for path, name in steps if not defines(path, name)] == []


def defines(path: str, name: str) -> bool:
    """True if the module defines this function, class or ``Class.method``."""
    if path not in MODULES:
        return False
    body: list[ast.stmt] = ast.parse((ROOT / "identity" / path).read_text()).body
    for part in name.split("."):
        found = [
            node
            for node in body
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == part
        ]
        if not found:
            return False
        body = found[0].body
    return True
