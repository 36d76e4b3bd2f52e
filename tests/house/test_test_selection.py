"""``make test`` runs a sample of the cases of tests with many cases."""

from dataclasses import dataclass

import pytest

from tests.conftest import quick_count, sample_cases, thorough_count


@dataclass(eq=False)
class Case:
    nodeid: str
    mark: pytest.Mark | None

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self.mark if self.mark and self.mark.name == name else None


def make_cases(name: str, count: int, mark: pytest.Mark | None = None) -> list[Case]:
    return [Case(f"{name}[{index}]", mark) for index in range(count)]


@pytest.mark.parametrize(
    ("cases", "limit", "selected"),
    [(10, 1, [0]), (10, 3, [0, 3, 6]), (10, 4, [0, 2, 5, 7]), (3, 3, [0, 1, 2]), (2, 8, [0, 1])],
)
def test_sampled_cases_are_evenly_spread(cases: int, limit: int, selected: list[int]) -> None:
    items = make_cases("test_many", cases, pytest.mark.sampled(limit).mark)
    assert [int(item.nodeid[10:-1]) for item in sample_cases(items, quick_count)] == selected  # type: ignore[arg-type]


def test_each_test_has_its_own_sample() -> None:
    mark = pytest.mark.sampled(2).mark
    items = [*make_cases("test_a", 4, mark), *make_cases("test_b", 4), *make_cases("test_c", 4, mark)]
    names = [item.nodeid for item in sample_cases(items, quick_count)]  # type: ignore[arg-type]
    assert names == ["test_a[0]", "test_a[2]", *(f"test_b[{index}]" for index in range(4)), "test_c[0]", "test_c[2]"]


@pytest.mark.parametrize(("mark", "count"), [(pytest.mark.sampled(2), 6), (pytest.mark.sampled(2, thorough=3), 3)])
def test_thorough_run_takes_its_own_number_of_cases(mark: pytest.MarkDecorator, count: int) -> None:
    assert len(sample_cases(make_cases("test_many", 6, mark.mark), thorough_count)) == count  # type: ignore[arg-type]
