"""Results by plan and module, as a folder for each plan."""

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.certification.plans import PLANS, CertificationPlan, plans_with

#: The alias of the suite's addresses, which end in /test/a/ALIAS/callback.
_ALIAS = "identity"
_COMMAND = "make certification"


class CertificationReport:
    """A pytest plugin that writes the folders at the end of the run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        #: Outcomes by plan and module: the names of tests, and whether they passed.
        self._outcomes: dict[tuple[str, str], dict[str, bool]] = {}
        self._counted: dict[str, list[tuple[str, str]]] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            assert isinstance(item, pytest.Function)
            flow = item.callspec.params.get("flow") if hasattr(item, "callspec") else None
            names = [name for mark in item.iter_markers("modules") for name in mark.args]
            self._counted[item.nodeid] = [(plan.folder, name) for name in names for plan in plans_with(name, flow)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed:
            for key in self._counted.get(report.nodeid, ()):
                self.record(key, report.nodeid, has_passed=report.passed)

    def record(self, key: tuple[str, str], test: str, *, has_passed: bool) -> None:
        """Count the outcome of a test for a module; ``key`` is the plan's folder and the module's name."""
        tests = self._outcomes.setdefault(key, {})
        tests[test] = tests.get(test, True) and has_passed

    def pytest_sessionfinish(self) -> None:
        self.write()

    def write(self) -> None:
        """Replace the folders of all plans."""
        for plan in PLANS:
            folder = self._folder / plan.folder
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            results = [self._result(plan, module) for module in plan.modules]
            summary = {
                "plan": plan.name,
                "variant": dict(plan.variant),
                "version": version("identity-iam"),
                "time": datetime.now(UTC).isoformat(timespec="seconds"),
                "modules": results,
            }
            _write_json(folder / "results.json", summary)
            _write_json(folder / "configuration.json", _configuration(plan))
            (folder / "README.md").write_text("\n".join(_readme(plan, results)) + "\n", "utf-8")

    def _result(self, plan: CertificationPlan, module: str) -> dict[str, object]:
        outcomes = self._outcomes.get((plan.folder, module), {})
        remark = plan.remarks.get(module)
        result, reason = "PASSED", ""
        if not all(outcomes.values()):
            result, reason = "FAILED", "a test failed"
        elif remark is not None:
            result, reason = remark.result, remark.reason
        elif not outcomes:
            result, reason = "NOT RUN", "its tests were left out of this run"
        tests = sorted({test.partition("[")[0] for test in outcomes})
        return {"module": module, "result": result, "reason": reason, "tests": tests}


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", "utf-8")


def _configuration(plan: CertificationPlan) -> dict[str, object]:
    """The configuration of the suite for this plan; capital letters stand for what the service or you choose."""
    certificate = {"cert": "CERTIFICATE", "key": "PRIVATE_KEY"}
    clients = {name: certificate if name.startswith("mtls") else dict(plan.client) for name in plan.clients}
    return {
        "alias": _ALIAS,
        "description": f"identity, {plan.profile}",
        "server": {"discoveryUrl": "https://HOST/.well-known/openid-configuration"},
        **clients,
        **({"resource": {"resourceUrl": "https://HOST/oidc/v1/userinfo"}} if "jwks" in plan.client else {}),
    }


def _readme(plan: CertificationPlan, results: list[dict[str, object]]) -> Iterator[str]:
    variant = "".join(f"[{name}={value}]" for name, value in plan.variant.items())
    yield from (
        f"# {plan.profile}",
        "",
        f"Each module of the plan `{plan.name}` of the OpenID Foundation's conformance suite, and the",
        "result of the tests in this repository that are equivalent to it. The suite itself was not run.",
        "",
        f"Run these tests again: `{_COMMAND}`",
        "",
        "Run the suite, after you entered the capital words in a copy of `configuration.json`:",
        "",
        f"    scripts/run-test-plan.py '{plan.name}{variant}' configuration.json",
        "",
    )
    if plan.application:
        yield "Applications of the tests have these settings besides the default ones:"
        yield ""
        yield from (f"- `{name}`: {value}" for name, value in plan.application.items())
        yield f"- `redirect_uris`: for the suite, its address with `/test/a/{_ALIAS}/callback`"
        yield ""
    yield from ("| Module | Result | Reason | Tests |", "|---|---|---|---|")
    for item in results:
        tests = item["tests"]
        assert isinstance(tests, list)
        names = "<br>".join(f"`{test}`" for test in tests)
        yield f"| `{item['module']}` | {item['result']} | {item['reason']} | {names} |"
