"""The table shows each measurement beside its target, and the verdict depends on the figures alone."""

from benchmarks.cli import MODES
from benchmarks.cpu_ratios import STORAGES, TITLES
from benchmarks.measurement import median_ratio
from benchmarks.targets import RATIOS, TargetResult, format_summary


def test_targets_name_measured_metrics() -> None:
    assert set(RATIOS) == set(TITLES)
    assert all(set(targets) == set(STORAGES) for targets in RATIOS.values())
    assert "ratios" in MODES


def test_ratio_is_median_of_rounds() -> None:
    assert median_ratio([1.0, 2.0, 9.0], [1.0, 1.0, 3.0]) == 2.0


def test_target_is_compared_as_printed() -> None:
    assert TargetResult("keys", 0.604, 0.6).is_met
    assert str(TargetResult("keys", 0.61, 0.6)) == "0.61 (target 0.6, missed)"
    lines = list(format_summary([TargetResult("keys", 0.6, 0.6), TargetResult("userinfo", 0.9, 0.8)]))
    assert "verdict: 1 of 2 targets hold" in lines
    assert lines[-1] == "  missed: userinfo 0.90 (target 0.8, missed)"
