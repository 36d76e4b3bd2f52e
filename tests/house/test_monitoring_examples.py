"""Dashboard, alert rules and runbook name existing metrics and each other; Prometheus validates the rules."""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from identity.domain.audit import AuditEvent
from identity.plugins.metrics.families import COUNTER_FAMILIES, FAMILIES, MetricFamily
from tests.external_programs import judge
from tests.house.service_processes import ROOT

OPERATORS = ROOT / "docs" / "how-to" / "operators"
EXAMPLES = OPERATORS / "examples"
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load((EXAMPLES / "alerts.yaml").read_text())["groups"] for rule in group["rules"]
]
BOARD: dict[str, Any] = json.loads((EXAMPLES / "dashboard.json").read_text())
RUNBOOK = (OPERATORS / "runbook.rst").read_text()
PAGE = (ROOT / "docs" / "reference" / "metrics.rst").read_text()


def series(family: MetricFamily) -> Iterator[tuple[str, frozenset[str]]]:
    """The names and labels of a metric's time series in Prometheus."""
    labels = frozenset(family.labels)
    if family.buckets:
        yield from ((f"{family.name}_{end}", labels) for end in ("sum", "count"))
        yield f"{family.name}_bucket", labels | {"le"}
    else:
        yield f"{family.name}_total" if family in COUNTER_FAMILIES else family.name, labels


SERIES = dict(item for family in FAMILIES for item in series(family))
#: Labels that Prometheus adds.
ITS_OWN = frozenset({"instance", "job"})


def misfits(expression: str) -> list[str]:
    """The unknown metrics and labels in an expression, and unbalanced brackets."""
    found = [name for name in re.findall(r"\bidentity_\w+", expression) if name not in SERIES]
    for name, selected in re.findall(r"\b(identity_\w+)\{([^}]*)\}", expression):
        labels = set(re.findall(r"(\w+)\s*[!=]~?\s*\"", selected))
        found += sorted(f"{name}{{{item}}}" for item in labels - SERIES.get(name, frozenset()) - ITS_OWN)
    known = ITS_OWN.union(*(SERIES[name] for name in re.findall(r"\bidentity_\w+", expression) if name in SERIES))
    for grouped in re.findall(r"\b(?:by|on)\s*\(([^)]*)\)", expression):
        found += [item.strip() for item in grouped.split(",") if item.strip() not in known]
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
def test_unknown_metric_or_label_is_found(wrong: str) -> None:
    assert misfits(wrong)


def promtool(*arguments: object) -> None:
    program = judge("promtool", "prometheus")
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_can_read_the_rules() -> None:
    promtool("check", "rules", EXAMPLES / "alerts.yaml")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_alerts_query_existing_metrics(rule: dict[str, Any]) -> None:
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert misfits(rule["expr"]) == []
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert re.fullmatch(r"\d+[smh]", rule.get("for", "0s"))
    events = set(re.findall(r'event="([^"]+)"', rule["expr"]))
    assert events <= AuditEvent.NAMES


def test_each_alert_has_a_section_in_the_runbook_and_each_section_an_alert() -> None:
    names = [rule["alert"] for rule in RULES]
    assert len(set(names)) == len(names)
    assert re.findall(r"^(\w+)\n-+$", RUNBOOK, re.MULTILINE) == names
    for rule in RULES:
        assert rule["annotations"]["runbook_url"].endswith(f"/how-to/operators/runbook.html#{rule['alert'].lower()}")


def panels() -> Iterator[tuple[str, str]]:
    for panel in BOARD["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


@pytest.mark.parametrize(("title", "expression"), list(panels()), ids=lambda item: str(item)[:40])
def test_panels_query_existing_metrics(title: str, expression: str) -> None:
    assert misfits(expression) == []


def test_prometheus_can_read_each_expression_of_the_dashboard(tmp_path: Path) -> None:
    # Grafana inserts the instances.
    expressions = [expression.replace("$instance", "a|b") for _, expression in panels()]
    rules = [{"record": f"panel_{number}", "expr": expression} for number, expression in enumerate(expressions)]
    path = tmp_path / "panels.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    promtool("check", "rules", path)


def test_failure_panel_shows_zero_without_failures(tmp_path: Path) -> None:
    [expression] = (item for title, item in panels() if title == "Failures")
    ask = {"expr": expression.replace("$instance", ".*"), "eval_time": "10m"}
    expected = [{"labels": "{}", "value": 0}]
    judged(tmp_path, {'identity_requests_total{status="200"}': "0+60x20"}, {**ask, "exp_samples": expected})


def judged(folder: Path, series: Mapping[str, str], expected: Mapping[str, Any]) -> None:
    """Run promtool on series with one sample a minute."""
    input_series = [{"series": name, "values": values} for name, values in series.items()]
    test = {"interval": "1m", "input_series": input_series, "promql_expr_test": [expected]}
    path = folder / "test.yaml"
    whole = {"rule_files": [str(EXAMPLES / "alerts.yaml")], "evaluation_interval": "1m", "tests": [test]}
    path.write_text(yaml.safe_dump(whole))
    promtool("test", "rules", path)


def _requests(endpoint: str, status: str) -> str:
    return f'identity_requests_total{{endpoint="{endpoint}",status="{status}",instance="a"}}'


def _took(name: str, labels: str, **counts: int) -> dict[str, str]:
    """Bucket series that grow by these counts a minute."""
    bounds = ((item.removeprefix("within_").replace("_", "."), count) for item, count in counts.items())
    return {
        f'{name}_seconds_bucket{{{labels},le="{bound}",instance="a"}}': f"0+{count}x30"
        for bound, count in (*bounds, ("+Inf", max(counts.values())))
    }


def _sign_ins(outcome: str) -> str:
    return f'identity_sign_ins_total{{method="password",outcome="{outcome}",instance="a"}}'


def _grants(outcome: str) -> str:
    return f'identity_grants_total{{grant_type="refresh_token",outcome="{outcome}",instance="a"}}'


_PROTOCOL, _PAGE = 'endpoint="protocol.token"', 'endpoint="console.users"'
_REPLAYED = 'identity_audit_events_total{event="token.replayed",instance="a"}'
_REPLACED = 'identity_workers_replaced_total{instance="a"}'
_BACKLOG = 'identity_purge_backlog{what="access tokens",instance="a"}'
_READING, _PASSWORDS = (f'identity_waiting{{what="{item}",instance="a"}}' for item in ("reading", "passwords"))

#: For each alert: the series since the start of the service, the minute of the evaluation, and whether the alert fires.
CASES: dict[str, tuple[tuple[Mapping[str, str], int, bool], ...]] = {
    "IdentityIsGone": (
        ({'up{job="identity",instance="a"}': "1x5 0x5"}, 9, True),
        ({'up{job="identity",instance="a"}': "1x5 0 1x5"}, 9, False),
    ),
    "IdentityStorageIsAway": (
        ({'identity_storage_up{instance="a"}': "1x5 0x5"}, 9, True),
        ({'identity_storage_up{instance="a"}': "1x10"}, 9, False),
    ),
    "IdentityFails": (
        ({_requests("protocol.token", "200"): "0+600x20", _requests("protocol.token", "503"): "0+30x20"}, 15, True),
        ({_requests("protocol.token", "503"): "0+30x20"}, 15, True),
        ({_requests("protocol.token", "200"): "0+600x20", _requests("protocol.token", "503"): "0+3x20"}, 15, False),
        ({_requests("protocol.token", "200"): "0+600x20"}, 15, False),
    ),
    "IdentityWorkersFall": (
        ({_REPLACED: "0 1 2 3x20"}, 8, True),
        ({_REPLACED: "0+5x20"}, 15, True),
        ({_REPLACED: "0 1 2x20"}, 15, False),
        # A restart of the service resets the counter.
        ({_REPLACED: "9x5 0x20"}, 15, False),
    ),
    "IdentityIsSlow": (
        (_took("identity_request", _PROTOCOL, within_1_0=97, within_2_5=100), 25, True),
        (_took("identity_request", _PROTOCOL, within_1_0=100, within_2_5=100), 25, False),
        (_took("identity_request", _PAGE, within_1_0=97, within_2_5=100), 25, False),
    ),
    "IdentityDatabaseIsSlow": tuple(
        (
            _took("identity_statement", f'statement="{statement_kind}"', within_0_1=quick, within_0_25=100)
            | _took("identity_statement", 'statement="SELECT"', within_0_1=1000),
            25,
            quick < 95,
        )
        for statement_kind in ("COMMIT", "INSERT", "WITH")
        for quick in (90, 100)
    ),
    "IdentityWaitsForConnections": (
        ({_READING: "0 0 3x10"}, 9, True),
        ({_READING: "0 3 0 3 0 3 0 3 0 3"}, 9, False),
        ({_PASSWORDS: "3x10"}, 9, False),
    ),
    "IdentityPasswordsWait": (
        ({_sign_ins("busy"): "0 0+5x20"}, 12, True),
        ({_sign_ins("busy"): "0x20"}, 12, False),
    ),
    "IdentityManyRefusedSignIns": (
        ({_sign_ins("refused"): "0+120x40", _sign_ins("succeeded"): "0x40"}, 30, True),
        ({_sign_ins("held back"): "0+120x40", _sign_ins("succeeded"): "0+6x40"}, 30, True),
        ({_sign_ins("refused"): "0+120x40", _sign_ins("succeeded"): "0+100x40"}, 30, False),
        ({_sign_ins("refused"): "0+12x40", _sign_ins("succeeded"): "0x40"}, 30, False),
    ),
    "IdentityGrantsFail": (
        ({_grants("invalid_client"): "0+60x40", _grants("issued"): "0x40"}, 30, True),
        ({_grants("failed"): "0+60x40", _grants("issued"): "0+6x40"}, 30, True),
        ({_grants("invalid_grant"): "0+60x40", _grants("issued"): "0+60x40"}, 30, False),
    ),
    "IdentityTokenReplayed": (
        ({_REPLAYED: "0x5 1x80"}, 10, True),
        ({_REPLAYED: "0x5 1x80"}, 70, False),
        ({_REPLAYED: "7x5 0x80"}, 10, False),
    ),
    "IdentityPurgeFallsBehind": (
        ({_BACKLOG: "10000x80", _requests("protocol.token", "200"): "0+10x80"}, 75, True),
        # No requests arrive, and the purge makes no progress.
        ({_BACKLOG: "10000x80", _requests("protocol.token", "200"): "10x80"}, 75, False),
        ({_BACKLOG: "9999x80", _requests("protocol.token", "200"): "0+10x80"}, 75, False),
    ),
    "IdentityMessagesWait": (
        ({'identity_outbox_oldest_seconds{way="mail",instance="a"}': "0+60x20"}, 17, True),
        ({'identity_outbox_oldest_seconds{way="mail",instance="a"}': "0+60x20"}, 15, False),
    ),
    "IdentityMessagesGivenUp": (
        ({'identity_outbox_given_up{way="mail",instance="a"}': "0 1x5"}, 3, True),
        ({'identity_outbox_given_up{way="mail",instance="a"}': "0x5"}, 3, False),
    ),
    "IdentitySigningKeyIsOld": tuple(
        (
            {
                'identity_signing_key_age_seconds{instance="a"}': f"{7776000 + over}x5",
                'identity_signing_key_due_seconds{instance="a"}': "7776000x5",
            },
            3,
            over > 86400,
        )
        for over in (86401, 86400)
    ),
    "IdentitySignerFails": (
        ({'identity_signer_calls_total{signer="pkcs11",outcome="failed",instance="a"}': "0+60x9"}, 8, True),
        ({'identity_signer_calls_total{signer="pkcs11",outcome="succeeded",instance="a"}': "0+60x9"}, 8, False),
    ),
    "IdentityKeysExpire": (
        ({'identity_expiring_keys{what="service user keys",instance="a"}': "0 2x5"}, 3, True),
        ({'identity_expiring_keys{what="service user keys",instance="a"}': "0x5"}, 3, False),
    ),
}


def test_each_alert_fires_and_stays_silent() -> None:
    assert set(CASES) == {rule["alert"] for rule in RULES}
    assert all({says for _, _, says in cases} == {True, False} for cases in CASES.values())
    for name in (name for cases in CASES.values() for series, _, _ in cases for name in series if name[:3] != "up{"):
        assert misfits(name) == []


@pytest.mark.sampled(15)
@pytest.mark.parametrize(
    ("alert", "series", "minute", "says"),
    [(alert, *case) for alert, cases in CASES.items() for case in cases],
    ids=[f"{alert}-{number}" for alert, cases in CASES.items() for number, _ in enumerate(cases)],
)
def test_alert_fires_only_when_expected(
    tmp_path: Path, alert: str, series: Mapping[str, str], minute: int, says: bool
) -> None:
    firing = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)'
    expected = [{"labels": "{}", "value": int(says)}]
    judged(tmp_path, series, {"expr": firing, "eval_time": f"{minute}m", "exp_samples": expected})


def test_dashboard_is_whole() -> None:
    visible_panels = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
    assert all(panel["targets"] and panel["fieldConfig"]["defaults"]["unit"] for panel in visible_panels)
    positions = [tuple(panel["gridPos"][item] for item in "xywh") for panel in BOARD["panels"]]
    for x, y, wide, high in positions:
        assert x + wide <= 24
        assert sum(a < x + wide and x < a + w and b < y + high and y < b + h for a, b, w, h in positions) == 1
    used = {name for _, expression in panels() for name in re.findall(r"\bidentity_\w+", expression)}
    unused = [family.name for family in FAMILIES if not used & {name for name, _ in series(family)}]
    assert unused == []


def test_each_metric_is_explained_and_no_other() -> None:
    explained = set(re.findall(r"``(identity_[a-z_]+)``", PAGE))
    named = {
        f"{family.name}_total" if family in COUNTER_FAMILIES and not family.buckets else family.name
        for family in FAMILIES
    }
    assert explained == named


def test_runbook_page_of_a_rule_exists() -> None:
    assert "\n   runbook\n" in (OPERATORS / "index.rst").read_text()
    assert "\n   metrics\n" in (ROOT / "docs" / "reference" / "index.rst").read_text()
