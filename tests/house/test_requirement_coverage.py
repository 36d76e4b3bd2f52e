"""Each row of the service description has a test that proves it, and no test names a row that does not exist."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent

sys.path.insert(0, str(ROOT / "docs" / "_ext"))
requirement_coverage: Any = __import__("requirement_coverage")

ROWS = {number: text for section in requirement_coverage.read_sections() for number, text in section.rows.items()}
TESTS_BY_REQUIREMENT = requirement_coverage.find_tests_by_requirement()


def test_each_requirement_has_a_test() -> None:
    assert ROWS.keys() - TESTS_BY_REQUIREMENT.keys() == set()


def test_tests_name_existing_requirements() -> None:
    assert TESTS_BY_REQUIREMENT.keys() - ROWS.keys() == set()


def test_every_mark_is_read() -> None:
    """The page does not look at marks in other places, such as on a class."""
    mark = "pytest.mark." + "shows("
    written = sum(path.read_text().count(mark) for path in (ROOT / "tests").rglob("*.py"))
    read = {test for tests in TESTS_BY_REQUIREMENT.values() for test in tests}
    assert written == len(read) > 100


def test_every_section_of_the_requirements_is_listed() -> None:
    """By the section numbers in the names of test files."""
    named = {
        found[1].replace("_", ".").removesuffix(".")
        for path in (ROOT / "tests" / "spec").glob("test_[0-9]*.py")
        if (found := re.match(r"test_((?:\d_)+)", path.name))
    }
    assert named - {section.number for section in requirement_coverage.read_sections()} == set()
    assert named >= {"2.1", "4.2", "7"}


@pytest.mark.thorough
def test_coverage_page_lists_each_requirement_with_its_tests() -> None:
    page = requirement_coverage.coverage()
    for number, text in ROWS.items():
        entry = page.partition(f"   * - {number}\n")[2].partition("   * - ")[0]
        assert text in entry
        assert all(item.file in entry for item in TESTS_BY_REQUIREMENT[number])


@pytest.mark.parametrize("broken", ["1  One\n1.2  Second", "1  One\n1.1  First\n1.3  Third", "1  One\n2.1  Other"])
def test_misplaced_row_is_reported(broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "rows.txt"
    file.write_text(broken)
    monkeypatch.setattr(requirement_coverage, "_ROWS", file)
    with pytest.raises(ValueError, match="row"):
        requirement_coverage.read_sections()
