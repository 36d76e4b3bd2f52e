"""Each figure is judged by its own target, and the verdict follows from the readings alone."""

import pytest

from benchmarks.cases import CODE_FLOW
from benchmarks.flood import ASKED
from benchmarks.run import CASES
from benchmarks.targets import TARGETS, Figure, Reading, target_of, verdict


def reading(figure: Figure, value: float, case: str = "", server: str = "waitress", storage: str = "sqlite") -> Reading:
    return Reading(figure, server, storage, case, value)


def test_a_case_has_one_target_for_each_server_and_storage() -> None:
    limits = {
        (server, storage): target.limit
        for server in ("waitress", "granian")
        for storage in ("sqlite", "postgresql")
        if (target := target_of(reading(Figure.COST, 1.0, "opaque", server, storage))) is not None
    }
    assert limits[("waitress", "sqlite")] == 3.0
    assert limits[("granian", "sqlite")] == 2.5
    assert limits[("waitress", "postgresql")] == 5.5


def test_targets_are_of_what_is_measured() -> None:
    assert {target.case for target in TARGETS} <= {"", *CASES, CODE_FLOW.name, *ASKED}


@pytest.mark.parametrize(
    ("figure", "good", "bad"),
    [(Figure.TAIL, 4.0, 4.1), (Figure.FLOOD, 2.0, 2.1), (Figure.SHARED, 5.0, 4.9), (Figure.GROWTH, 1.15, 1.16)],
)
def test_the_verdict_parts_what_holds_from_what_is_missed(figure: Figure, good: float, bad: float) -> None:
    right, wrong = reading(figure, good, "opaque"), reading(figure, bad, "opaque")
    assert verdict([right, wrong]) == ([right], [wrong])


def test_what_has_no_target_is_in_no_verdict() -> None:
    assert verdict([reading(Figure.COST, 100.0, "authorize"), reading(Figure.MEMORY, 1e6, storage="postgresql")]) == (
        [],
        [],
    )
