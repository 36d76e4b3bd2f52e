"""Dashboard, alert rules and runbook speak of metrics that there are, and of each other."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from identity.domain.audit import EVENTS
from identity.plugins.metrics.families import COUNTED, FAMILIES, Family
from tests.house.served import ROOT

OPERATORS = ROOT / "docs" / "operators"
EXAMPLES = OPERATORS / "examples"
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load((EXAMPLES / "alerts.yaml").read_text())["groups"] for rule in group["rules"]
]
BOARD: dict[str, Any] = json.loads((EXAMPLES / "dashboard.json").read_text())
RUNBOOK = (OPERATORS / "runbook.rst").read_text()
PAGE = (OPERATORS / "metrics.rst").read_text()


def series(family: Family) -> Iterator[tuple[str, frozenset[str]]]:
    """The names under which Prometheus keeps a metric, each with its labels."""
    labels = frozenset(family.labels)
    if family.bounds:
        yield from ((f"{family.name}_{end}", labels) for end in ("sum", "count"))
        yield f"{family.name}_bucket", labels | {"le"}
    else:
        yield f"{family.name}_total" if family in COUNTED else family.name, labels


SERIES = dict(one for family in FAMILIES for one in series(family))
#: What Prometheus itself adds.
ITS_OWN = frozenset({"instance", "job"})


def misfits(expression: str) -> list[str]:
    """What in an expression is no metric, no label of it, or no whole expression."""
    found = [name for name in re.findall(r"\bidentity_\w+", expression) if name not in SERIES]
    for name, selected in re.findall(r"\b(identity_\w+)\{([^}]*)\}", expression):
        labels = set(re.findall(r"(\w+)\s*[!=]~?\s*\"", selected))
        found += sorted(f"{name}{{{one}}}" for one in labels - SERIES.get(name, frozenset()) - ITS_OWN)
    known = ITS_OWN.union(*(SERIES[name] for name in re.findall(r"\bidentity_\w+", expression) if name in SERIES))
    for grouped in re.findall(r"\b(?:by|on)\s*\(([^)]*)\)", expression):
        found += [one.strip() for one in grouped.split(",") if one.strip() not in known]
    if any(expression.count(opens) != expression.count(closes) for opens, closes in ("()", "[]", "{}")):
        found.append("brackets")
    return found


@pytest.mark.parametrize(
    "wrong",
    [
        "identity_request_total",
        'identity_requests_total{route="x"}',
        "sum by (path) (identity_requests_total)",
        "rate(identity_requests_total[5m]",
    ],
)
def test_what_does_not_fit_is_found(wrong: str) -> None:
    assert misfits(wrong)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_asks_for_what_there_is(rule: dict[str, Any]) -> None:
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert misfits(rule["expr"]) == []
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert re.fullmatch(r"\d+[smh]", rule.get("for", "0s"))
    asked = set(re.findall(r'event="([^"]+)"', rule["expr"]))
    assert asked <= EVENTS


def test_each_alert_has_a_section_in_the_runbook_and_each_section_an_alert() -> None:
    names = [rule["alert"] for rule in RULES]
    assert len(set(names)) == len(names)
    assert re.findall(r"^(\w+)\n-+$", RUNBOOK, re.MULTILINE) == names
    for rule in RULES:
        assert rule["annotations"]["runbook_url"].endswith(f"/operators/runbook.html#{rule['alert'].lower()}")


def panels() -> Iterator[tuple[str, str]]:
    for panel in BOARD["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


@pytest.mark.parametrize(("title", "expression"), list(panels()), ids=lambda one: str(one)[:40])
def test_a_panel_asks_for_what_there_is(title: str, expression: str) -> None:
    assert misfits(expression) == []


def test_the_dashboard_is_whole() -> None:
    shown = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
    assert all(panel["targets"] and panel["fieldConfig"]["defaults"]["unit"] for panel in shown)
    places = [tuple(panel["gridPos"][one] for one in "xywh") for panel in BOARD["panels"]]
    for x, y, wide, high in places:
        assert x + wide <= 24
        assert sum(a < x + wide and x < a + w and b < y + high and y < b + h for a, b, w, h in places) == 1
    used = {name for _, expression in panels() for name in re.findall(r"\bidentity_\w+", expression)}
    unused = [family.name for family in FAMILIES if not used & {name for name, _ in series(family)}]
    assert unused == []


def test_each_metric_is_explained_and_no_other() -> None:
    explained = set(re.findall(r"``(identity_[a-z_]+)``", PAGE))
    named = {f"{family.name}_total" if family in COUNTED and not family.bounds else family.name for family in FAMILIES}
    assert explained == named


def test_the_page_of_a_rule_is_there() -> None:
    index = Path(ROOT / "docs" / "index.rst").read_text()
    assert "operators/runbook" in index
    assert "operators/metrics" in index
