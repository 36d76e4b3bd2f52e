"""The cost of requests relative to node-oidc-provider, in one run, and whether targets are met."""

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from math import nan
from statistics import median

from benchmarks.installations import (
    Installation,
    NodejsMissing,
    NodejsPackage,
    find_nodejs_package,
    install_node_provider,
    install_service,
)
from benchmarks.measurement import MeasurementPlan, measure_cases, median_ratio
from benchmarks.service_process import ServiceConfiguration
from benchmarks.targets import RATIOS, TargetResult

TITLES = {
    "discovery": "discovery",
    "keys": "keys",
    "opaque": "assertion → opaque token + ID token",
    "jwt": "assertion → JWT + ID token",
    "introspection": "introspection",
    "userinfo": "userinfo",
    "refresh": "refresh with rotation",
    "code-flow": "code flow in a session",
}
STORAGES = {"sqlite": "SQLite", "postgresql": "PostgreSQL, database included"}
#: Node.js compiles a function after some thousand calls: the uncounted first round of a case is this many times longer.
_WARM_UP = 8


def measure_ratios(
    storages: Iterable[str], names: Sequence[str], pool: Executor, amount: MeasurementPlan
) -> tuple[list[str], list[TargetResult]]:
    """Measure these cases on these storages. Raises UnexpectedResponse, ServiceStartError."""
    lines = [f"{amount.connections} connections, {amount.rounds} rounds; load average before: {os.getloadavg()[0]:.1f}"]
    results = []
    with ExitStack() as stack:
        node = _open_node_provider(lines)
        sides: list[Installation] = []
        for storage in storages:
            if node is not None and (node.drivers or not sides):
                sides.append(stack.enter_context(install_node_provider(node, storage, pool)))
            sides.append(
                stack.enter_context(install_service(ServiceConfiguration(storage, server=(("workers", "1"),)), pool))
            )
        selected = [
            [name for name in names if "postgresql" not in side.name or RATIOS[name]["postgresql"]] for side in sides
        ]
        figures = measure_cases(sides, selected, pool, amount, warm_up=_WARM_UP)
    indexes = {side.name: index for index, side in enumerate(sides)}
    for storage in storages:
        lines += ["", f"{f'{STORAGES[storage]}, µs of CPU a request':<46}{'node':>8}{'service':>10}  ratio"]
        beside = indexes.get(f"node, {storage}", indexes.get("node, memory", -1))
        for name in (name for name in names if (indexes[storage], name) in figures):
            ours, reference, target = (
                figures[indexes[storage], name],
                figures.get((beside, name)),
                RATIOS[name][storage],
            )
            line = f"{TITLES[name]:<46}{median(reference) * 1e6 if reference else nan:>8.0f}{median(ours) * 1e6:>10.0f}"
            if reference and target:
                results.append(
                    TargetResult(f"{TITLES[name]}, {STORAGES[storage]}", median_ratio(ours, reference), target)
                )
                line = f"{line}  {results[-1]}"
            lines.append(line)
    return lines, results


def _open_node_provider(lines: list[str]) -> NodejsPackage | None:
    """node-oidc-provider, if available, and a line about it."""
    try:
        node = find_nodejs_package()
    except NodejsMissing as problem:
        lines.append(f"without node-oidc-provider: {problem}")
        return None
    without = "" if node.drivers else " in memory, as npm cannot install its drivers: what writes looks too cheap there"
    lines.append(f"node-oidc-provider {node.version}{without}")
    return node
