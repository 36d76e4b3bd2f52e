"""Options of a test run, and its summary."""

import gc
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from identity.log_formatters import RepeatedMessageFilter
from tests import secret_search

# Nothing that collection creates is freed before the end of the run, and scanning it again and again took half the
# time.
gc.disable()

#: Must come before the first import of the service.
SEARCH = secret_search.begin() if secret_search.is_enabled() else None

pytest_plugins = ["identity.testing.fixtures"]

# Durations prove nothing: the machine may be busy with other work.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

#: How the skip reasons of tests that need external programs begin.
MISSING = {
    "Chromium is not installed": "the browser tests",
    "a proxy is not installed": "the tests with proxies",
    "PostgreSQL is not installed": "the tests with PostgreSQL",
    "what judges examples is not installed": "the tests of alerts, dashboard and unit",
}

#: Markers of tests that run only with the option of the same name.
OPTIONAL = {
    "pictures": "takes pictures",
    "thorough": "takes long",
    "exhaustive": "costs much and seldom finds more than cheaper tests; for `make test-all`",
    "servers": "asks a web server that `identity serve` does not start",
}

#: Paths of tests of endpoints: with --both-ways they run under Pyramid and under the ASGI application.
PROTOCOL = re.compile(r"(certification|http|provider)/")
#: With --exhaustive, the tests of the management API and of rules do so, too.
PROTOCOL_AND_RULES = re.compile(r"(certification|http|provider|spec)/")
TESTS = Path(__file__).parent

#: How many characters of a line with a secret are shown.
LONGEST_SHOWN = 400

#: A folder in memory, and the free bytes that it must have.
IN_MEMORY, ROOM = Path("/dev/shm"), 4 << 30  # noqa: S108


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--thorough",
        action="store_true",
        help="every case, and tests that take long; without --every-storage only on SQLite and through ASGI",
    )
    parser.addoption("--exhaustive", action="store_true", help=OPTIONAL["exhaustive"])
    parser.addoption("--servers", action="store_true", help="web servers that `identity serve` does not start, too")
    parser.addoption("--shows", metavar="ROW", help="only what shows this row of the service description, as 4.2.3")
    parser.addoption(secret_search.OPTION, action="store_true", help="log at DEBUG, and look for secrets in all lines")
    parser.addoption("--both-ways", action="store_true", help="tests of the protocol by Pyramid and by ASGI")
    group = parser.getgroup("pictures")
    group.addoption("--pictures", action="store_true", help="take pictures of all pages, for people to look at")
    group.addoption(
        "--pictures-folder", default="var/pictures", metavar="FOLDER", help="where they are kept (default: %(default)s)"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.config.getoption("--both-ways") and "asgi" in metafunc.fixturenames:
        path = metafunc.definition.path.relative_to(TESTS).as_posix()
        both_ways = PROTOCOL_AND_RULES if metafunc.config.getoption("--exhaustive") else PROTOCOL
        storages = metafunc.definition.get_closest_marker("storages")
        # Tests for databases alone are about these.
        if both_ways.match(path) and (storages is None or "memory" in storages.args):
            metafunc.parametrize("asgi", [False, True], ids=["pyramid", "asgi"], indirect=True)


@pytest.fixture(autouse=True)
def reset_repeated_messages() -> None:
    """Log messages that are limited to one a minute appear again in each test."""
    for logger in logging.root.manager.loggerDict.values():
        for item in getattr(logger, "filters", ()):
            if isinstance(item, RepeatedMessageFilter):
                item.reset()


@pytest.fixture(autouse=True)
def no_secret_in_any_line(request: pytest.FixtureRequest) -> Iterator[None]:
    """With --search-logs, a test fails if it logs a secret that it created or received."""
    yield
    if SEARCH is not None:
        # pytest captures the standard error of child processes.
        for _, kind, text in request.node._report_sections:
            SEARCH.lines += text.splitlines() if kind == "stderr" else ()
        if found := SEARCH.found():
            pytest.fail("\n".join(item[:LONGEST_SHOWN] for item in ["secrets were logged", *found]), pytrace=False)


def pytest_configure(config: pytest.Config) -> None:
    # Test databases need not survive a crash, so they need not wait for a disk.
    if IN_MEMORY.is_dir() and os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free > ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))
    for name, requirement in OPTIONAL.items():
        config.addinivalue_line("markers", f"{name}: {requirement}, and runs with --{name} alone")
    config.addinivalue_line(
        "markers",
        "sampled(count, thorough=None): runs that many of its cases, the other number with --thorough (None: all), and"
        " all of them with --exhaustive",
    )
    config.addinivalue_line("markers", "shows(*rows): how these rows of the service description are met")
    config.addinivalue_line(
        "markers", "modules(*names): the modules of the OpenID Foundation's conformance suite that it is equivalent to"
    )


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors, since tests wait for browsers, databases and processes."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [name for name in OPTIONAL if name != "thorough" and not config.getoption(f"--{name}")]
    selected = [item for item in items if not any(map(item.get_closest_marker, left_out))]
    quick = set(quick_selection(selected))
    if not config.getoption("--thorough"):
        selected = [item for item in selected if item in quick]
    elif not config.getoption("--exhaustive"):
        selected = sample_cases(selected, thorough_count)
    if not (config.getoption("--every-storage") or config.getoption("--identity-storage")):
        extra = config.getoption("--extra-storages")
        selected = [item for item in selected if is_near_default(item, item in quick, extra_storages=extra)]
    if row := config.getoption("--shows"):
        selected = [item for item in selected if any(row in mark.args for mark in item.iter_markers("shows"))]
    config.hook.pytest_deselected(items=list(set(items).difference(selected)))
    items[:] = selected


def is_near_default(item: pytest.Item, is_quick: bool, *, extra_storages: bool) -> bool:
    """Whether a test runs on SQLite and through ASGI; or, if it is quick, on another storage or through Pyramid."""
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    has_other_storage = parameters.get("storage_name", "sqlite") != "sqlite" and not item.get_closest_marker("storages")
    if has_other_storage and not extra_storages:
        return False
    return has_other_storage + (not parameters.get("asgi", True)) <= is_quick


def quick_selection(items: list[pytest.Item]) -> list[pytest.Item]:
    """What `make test` runs: no test marked ``thorough``, and a sample of the cases of those marked ``sampled``."""
    return sample_cases([item for item in items if not item.get_closest_marker("thorough")], quick_count)


def quick_count(mark: pytest.Mark) -> int:
    return int(mark.args[0])


def thorough_count(mark: pytest.Mark) -> int | None:
    count: int | None = mark.kwargs.get("thorough")
    return count


def sample_cases(items: list[pytest.Item], count_of: Callable[[pytest.Mark], int | None]) -> list[pytest.Item]:
    """Keep as many cases of each ``sampled`` test as its mark says (None: all): the first, and others at equal
    distances.
    """
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out = set[pytest.Item]()
    for group in cases.values():
        count = min(len(group), count_of(group[0].get_closest_marker("sampled")) or len(group))
        left_out.update(set(group) - {group[index * len(group) // count] for index in range(count)})
    return [item for item in items if item not in left_out]


def pytest_collection_finish() -> None:
    gc.freeze()
    # Tests allocate much and keep little, so collecting less often saves a tenth of the time.
    gc.set_threshold(20_000, 10, 10)
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons = {
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple)
    }
    for reason in sorted(reasons):
        for beginning, tests in MISSING.items():
            if reason.startswith(beginning):
                terminalreporter.write_line(f"Left out: {tests}, because {reason}", yellow=True)
