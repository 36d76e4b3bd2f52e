"""Pages of the plugin API: each public name is in an example, and the imports and definitions of each example run."""

import ast
import re
import textwrap
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.house.test_public_api import MODULES

FOLDER = Path(__file__).parents[2] / "docs" / "reference" / "plugin-api"
PAGES = {module: FOLDER / f"{module.rpartition('.')[2]}.rst" for module in MODULES}
_BLOCK = re.compile(r"^\.\. code-block:: python\n\n((?:    .*\n|\n)+)", re.MULTILINE)


def examples(page: Path) -> list[str]:
    return [textwrap.dedent(block) for block in _BLOCK.findall(page.read_text("utf-8"))]


def test_each_module_has_its_page() -> None:
    assert {path.stem for path in FOLDER.glob("*.rst")} == {"index", *(path.stem for path in PAGES.values())}


@pytest.mark.parametrize("module", MODULES)
def test_each_public_name_is_used_in_an_example(module: str) -> None:
    page = PAGES[module]
    assert f".. automodule:: {module}\n" in page.read_text("utf-8")
    used = {
        node.id for example in examples(page) for node in ast.walk(ast.parse(example)) if isinstance(node, ast.Name)
    }
    assert set(import_module(module).__all__) - used == set()


@pytest.mark.parametrize("page", sorted(FOLDER.glob("*.rst")), ids=lambda page: page.stem)
def test_each_example_runs(page: Path) -> None:
    for example in examples(page):
        scope: dict[str, Any] = {"__name__": f"example_of_{page.stem}"}
        exec(compile(example, page.name, "exec"), scope)  # noqa: S102 - our own documentation
