"""The page that lists the tests of each row of the service description: ``.. identity-coverage::``.

The rows are in ``docs/contributors/service-description.txt``. A test names the rows that it covers with
``@pytest.mark.shows("4.2.3")``. This module parses the source of the tests, so that it need not import them.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_ROOT = Path(__file__).parent.parent.parent
_ROWS = _ROOT / "docs" / "contributors" / "service-description.txt"


class RequirementSection(NamedTuple):
    """A section of the service description; ``rows`` are texts by number."""

    number: str
    title: str
    rows: dict[str, str]


class RequirementTest(NamedTuple):
    """A test that covers a row: its file below ``tests`` and its name."""

    file: str
    test: str


def read_sections() -> list[RequirementSection]:
    """All sections in order. Raises ValueError if a row is out of sequence."""
    found: list[RequirementSection] = []
    for block in _ROWS.read_text("utf-8").strip().split("\n\n"):
        (number, title), *rows = (line.split("  ", 1) for line in block.splitlines())
        if [row[0] for row in rows] != [f"{number}.{place}" for place in range(1, len(rows) + 1)]:
            raise ValueError(f"a row of §{number} is out of place")
        found.append(RequirementSection(number, title, dict(rows)))
    return found


def find_tests_by_requirement(folder: Path = _ROOT / "tests") -> dict[str, list[RequirementTest]]:
    """Numbers that tests name, each with the tests that name it, in order."""
    found: dict[str, list[RequirementTest]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        for test, numbers in _marked(ast.parse(path.read_text("utf-8"))):
            for number in numbers:
                found.setdefault(number, []).append(RequirementTest(path.relative_to(folder).as_posix(), test))
    return found


def _marked(tree: ast.Module) -> Iterator[tuple[str, list[str]]]:
    for node in tree.body:
        for mark in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.shows":
                yield node.name, [ast.literal_eval(arg) for arg in mark.args]


def coverage() -> str:
    """A table for each section: number, what the row says, the tests."""
    by_tests = find_tests_by_requirement()
    parts: list[str] = []
    for section in read_sections():
        title = f"§{section.number} {section.title}"
        parts += [title, "-" * len(title), "", ".. list-table::", "   :widths: 8 42 50", "   :header-rows: 1", ""]
        parts += ["   * - Row", "     - What it says", "     - Tests"]
        for number, text in section.rows.items():
            parts += [f"   * - {number}", f"     - {text}"]
            tests = [f"| {_sentence(item.test)} (``{item.file}``)" for item in by_tests.get(number, ())]
            parts += [f"     - {tests[0]}", *(f"       {test}" for test in tests[1:])] if tests else ["     -"]
        parts.append("")
    return "\n".join(parts)


def _sentence(test: str) -> str:
    text = test.removeprefix("test_").replace("_s_", "'s_").replace("_", " ")
    return text[0].upper() + text[1:]
