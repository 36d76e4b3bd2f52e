"""Paths of charts."""

import re

from hypothesis import given
from hypothesis import strategies as st

from identity.plugins.console.charts import axis_maximum, bars_path, grid_path, share, trend_path

COUNTS = st.lists(st.integers(0, 10**9), max_size=40)


def test_bars_are_as_high_as_their_part_of_the_axis() -> None:
    assert bars_path([0, 2, 4], 4) == "M117.5 100v-50h65v50zM217.5 100v-100h65v100z"
    assert bars_path([], 4) == bars_path([1], 0) == ""


@given(COUNTS)
def test_axis_ends_at_a_round_number_above_all_values(values: list[int]) -> None:
    maximum = axis_maximum(values)
    assert max([*values, 3]) <= maximum <= max(3, 2 * max([*values, 0]) + 1)
    assert maximum % 3 == 0


@given(COUNTS)
def test_each_positive_value_has_a_bar_inside_the_plot(values: list[int]) -> None:
    bars = re.findall(r"M([\d.]+) 100v-([\d.]+)h([\d.]+)v\2z", bars_path(values, axis_maximum(values)))
    assert len(bars) == sum(value > 0 for value in values)
    assert all(
        float(x) >= 0 and float(x) + float(width) <= 300 and 1 <= float(height) <= 100 for x, height, width in bars
    )


@given(COUNTS)
def test_trend_stays_inside_its_box(values: list[int]) -> None:
    path = trend_path(values)
    points = re.findall(r"(-?[\d.]+) (-?[\d.]+)", path)
    assert bool(path) is (len(values) > 1)
    assert all(3 <= float(y) <= 25 for _, y in points)


def test_trend_rises_with_its_values() -> None:
    assert trend_path([1, 3]) == "M-3 25L0 25 100 3 103 3V40H-3z"
    assert trend_path([2, 2]) == "M-3 25L0 25 100 25 103 25V40H-3z"


def test_grid_has_lines_from_top_to_bottom() -> None:
    assert grid_path(3) == "M0 0h300M0 50h300M0 100h300"


def test_share_rounds_to_neither_none_nor_all() -> None:
    assert [share(*pair) for pair in ((0, 0), (0, 5), (1, 1000), (1, 3), (999, 1000), (5, 5))] == [0, 0, 1, 33, 99, 100]
