"""What a request costs beside node-oidc-provider, in one run, and whether that is what it has to be."""

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from math import nan
from statistics import median

from benchmarks.installation import Installation, Node, NoNode, find_node, installed, installed_node
from benchmarks.measuring import Amount, measure, ratio
from benchmarks.service import Setup
from benchmarks.targets import RATIOS, Verdict

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
#: Node.js compiles what it has run some thousand times: so long the first, uncounted round of a case is.
_WARM_UP = 8


def find(
    storages: Iterable[str], names: Sequence[str], pool: Executor, amount: Amount
) -> tuple[list[str], list[Verdict]]:
    """Measure these cases on these storages. Raises LoadFailed, NotServing."""
    lines = [f"{amount.connections} connections, {amount.rounds} rounds; load average before: {os.getloadavg()[0]:.1f}"]
    verdicts = []
    with ExitStack() as stack:
        node = _node(lines)
        sides: list[Installation] = []
        for storage in storages:
            if node is not None and (node.drivers or not sides):
                sides.append(stack.enter_context(installed_node(node, storage, pool)))
            sides.append(stack.enter_context(installed(Setup(storage, server=(("workers", "1"),)), pool)))
        wanted = [
            [name for name in names if "postgresql" not in side.name or RATIOS[name]["postgresql"]] for side in sides
        ]
        figures = measure(sides, wanted, pool, amount, warm_up=_WARM_UP)
    places = {side.name: place for place, side in enumerate(sides)}
    for storage in storages:
        lines += ["", f"{f'{STORAGES[storage]}, µs of CPU a request':<46}{'node':>8}{'service':>10}  ratio"]
        beside = places.get(f"node, {storage}", places.get("node, memory", -1))
        for name in (one for one in names if (places[storage], one) in figures):
            ours, theirs, target = figures[places[storage], name], figures.get((beside, name)), RATIOS[name][storage]
            line = f"{TITLES[name]:<46}{median(theirs) * 1e6 if theirs else nan:>8.0f}{median(ours) * 1e6:>10.0f}"
            if theirs and target:
                verdicts.append(Verdict(f"{TITLES[name]}, {STORAGES[storage]}", ratio(ours, theirs), target))
                line = f"{line}  {verdicts[-1]}"
            lines.append(line)
    return lines, verdicts


def _node(lines: list[str]) -> Node | None:
    """node-oidc-provider, if it can be had, and a line about it."""
    try:
        node = find_node()
    except NoNode as problem:
        lines.append(f"without node-oidc-provider: {problem}")
        return None
    without = "" if node.drivers else " in memory, as npm cannot install its drivers: what writes looks too cheap there"
    lines.append(f"node-oidc-provider {node.version}{without}")
    return node
