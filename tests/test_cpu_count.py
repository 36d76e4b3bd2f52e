"""The number of usable processors: those that the system reports, limited by the CPU quota of control groups."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from identity import cpu_count


@pytest.mark.parametrize(
    ("groups", "limits", "count"),
    [
        ("0::/", {}, 8),
        ("0::/", {"cpu.max": "max 100000"}, 8),
        ("0::/", {"cpu.max": "200000 100000"}, 2),
        ("0::/", {"cpu.max": "150000 100000"}, 2),
        ("0::/", {"cpu.max": "50000 100000"}, 1),
        ("0::/", {"cpu.max": "1600000 100000"}, 8),
        ("0::/a/b", {"a/b/cpu.max": "300000 100000", "cpu.max": "max 100000"}, 3),
        # The lowest quota of all levels counts.
        ("0::/a/b", {"a/b/cpu.max": "400000 100000", "a/cpu.max": "300000 100000"}, 3),
        # Outside of the container the group has another name.
        ("0::/machine/c1", {"cpu.max": "200000 100000"}, 2),
        ("4:cpu,cpuacct:/a", {"cpu/a/cpu.cfs_quota_us": "200000", "cpu/a/cpu.cfs_period_us": "100000"}, 2),
        ("4:cpu:/docker/c1", {"cpu/cpu.cfs_quota_us": "250000", "cpu/cpu.cfs_period_us": "100000"}, 3),
        ("4:cpu:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 8),
        # The group of that name belongs to another controller.
        ("4:memory:/a", {"cpu/a/cpu.cfs_quota_us": "200000", "cpu/a/cpu.cfs_period_us": "100000"}, 8),
        (None, {}, 8),
    ],
)
def test_cpu_count_respects_control_groups(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, groups: str | None, limits: Mapping[str, str], count: int
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(cpu_count, "_OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(cpu_count, "_GROUPS", tmp_path / "groups")
    if groups is not None:
        (tmp_path / "own").write_text(f"1:name=systemd:/\n{groups}\n")
    for name, limit in limits.items():
        file = tmp_path / "groups" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{limit}\n")
    assert cpu_count.available_cpus() == count
