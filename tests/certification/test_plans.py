"""Each module of the plans has an equivalent in this folder, or a remark that says why not."""

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FunctionType

import pytest

from tests.certification.plans import PLANS, CertificationPlan, FapiVariant, Flow, plans_with
from tests.certification.report import CertificationReport


def marked_modules() -> Iterator[tuple[str, Flow | FapiVariant | None]]:
    """Module names of the tests in this folder, each in each flow that its test runs in."""
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        file = import_module(f"{__package__}.{path.stem}")
        shared: object = getattr(file, "pytestmark", [])
        of_file = shared if isinstance(shared, list) else [shared]
        for test in vars(file).values():
            if isinstance(test, FunctionType) and test.__name__.startswith("test_"):
                marks = [*of_file, *getattr(test, "pytestmark", [])]
                flows = [flow for mark in marks if mark.args[:1] == ("flow",) for flow in mark.args[1]]
                for mark in marks:
                    if mark.name == "modules":
                        yield from ((name, flow) for name in mark.args for flow in flows or [None])


MARKED = list(marked_modules())


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.folder)
def test_each_module_has_an_equivalent(plan: CertificationPlan) -> None:
    covered = {name for name, flow in MARKED if plan in plans_with(name, flow)}
    skipped = {name for name, remark in plan.remarks.items() if remark.result == "SKIPPED"}
    assert set(plan.modules) - covered - skipped == set()
    assert set(plan.remarks) <= set(plan.modules)
    assert len(set(plan.modules)) == len(plan.modules)


def test_tests_name_published_modules() -> None:
    known = {module for plan in PLANS for module in plan.modules}
    assert {name for name, _ in MARKED} <= known


def test_report_has_each_module_with_its_result_and_the_reason(tmp_path: Path) -> None:
    """Secrets stay out, and so does any claim beyond the tests."""
    report = CertificationReport(tmp_path)
    hybrid = "oidcc-hybrid-certification-test-plan"
    for module, outcomes in (("oidcc-server", [True, False]), ("oidcc-ui-locales", [True])):
        for number, has_passed in enumerate(outcomes):
            report.record((hybrid, module), f"test_x[{number}]", has_passed=has_passed)
    report.write()
    assert {path.name for path in tmp_path.iterdir()} == {plan.folder for plan in PLANS}
    results = {item["module"]: item for item in json.loads((tmp_path / hybrid / "results.json").read_text())["modules"]}
    assert [results[name]["result"] for name in ("oidcc-server", "oidcc-ui-locales")] == ["FAILED", "PASSED"]
    assert results["oidcc-ui-locales"]["tests"] == ["test_x"]
    for path in tmp_path.rglob("*"):
        text = path.read_text() if path.is_file() else ""
        assert "certified" not in text.lower()
        if path.name == "results.json":
            assert all(item["reason"] or item["result"] == "PASSED" for item in json.loads(text)["modules"])
        if path.name == "configuration.json":
            assert '"client_secret": "' not in text.replace('"SECRET"', "")
        if path.name == "README.md":
            assert "make certification" in text
