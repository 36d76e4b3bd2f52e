"""Options of a whole run, and what it says at its end."""

import gc
import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from identity.log_formatters import RepeatedMessageFilter
from tests import secret_search

# Nothing that is imported and collected goes away before the end: looking at it again and again took half the time.
gc.disable()

#: Before anything of the service is imported.
SEARCH = secret_search.begin() if secret_search.is_enabled() else None

pytest_plugins = ["identity.testing.fixtures"]

# How long something takes says nothing: the machine may be busy with other work.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

#: Beginnings of the reasons with which tests that need external programs are skipped.
MISSING = {
    "Chromium is not installed": "the browser tests",
    "a proxy is not installed": "the tests with proxies",
    "PostgreSQL is not installed": "the tests with PostgreSQL",
    "what judges examples is not installed": "the tests of alerts, dashboard and unit",
}

#: Marks of tests that run when they are asked for.
OPTIONAL = {
    "pictures": "takes pictures",
    "thorough": "takes long",
    "servers": "asks a web server that `identity serve` does not start",
}

#: Folders of tests of the protocol: Pyramid answers as the ASGI application does.
BOTH_WAYS = frozenset({"certification", "http", "provider", "spec"})
TESTS = Path(__file__).parent

#: How much of a line is shown that holds a secret.
LONGEST_SHOWN = 400

#: A folder in memory, and how many bytes have to be free there.
IN_MEMORY, ROOM = Path("/dev/shm"), 4 << 30  # noqa: S108


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thorough", action="store_true", help="every case, and tests that take long")
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
        folder = metafunc.definition.path.relative_to(TESTS).parts[0]
        if folder in BOTH_WAYS:
            metafunc.parametrize("asgi", [False, True], ids=["pyramid", "asgi"], indirect=True)


@pytest.fixture(autouse=True)
def no_secret_was_logged() -> None:
    """Messages that are logged once a minute are logged again in each test."""
    for logger in logging.root.manager.loggerDict.values():
        for item in getattr(logger, "filters", ()):
            if isinstance(item, RepeatedMessageFilter):
                item.reset()


@pytest.fixture(autouse=True)
def no_secret_in_any_line(request: pytest.FixtureRequest) -> Iterator[None]:
    """With --search-logs no line that a test has logged holds a secret that was made or given in it."""
    yield
    if SEARCH is not None:
        # pytest captures the stderr of processes.
        for _, kind, text in request.node._report_sections:
            SEARCH.lines += text.splitlines() if kind == "stderr" else ()
        if found := SEARCH.found():
            pytest.fail("\n".join(item[:LONGEST_SHOWN] for item in ["secrets were logged", *found]), pytrace=False)


def pytest_configure(config: pytest.Config) -> None:
    # Databases that do not outlive the tests need not wait for a disk.
    if IN_MEMORY.is_dir() and os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free > ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))
    for name, requirement in OPTIONAL.items():
        config.addinivalue_line("markers", f"{name}: {requirement}, and runs with --{name} alone")
    config.addinivalue_line("markers", "sampled(count): runs that many of its cases, and all of them with --thorough")
    config.addinivalue_line("markers", "shows(*rows): how these rows of the service description are met")


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: browsers, databases and processes are waited for."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [name for name in OPTIONAL if not config.getoption(f"--{name}")]
    kept = [item for item in items if not any(map(item.get_closest_marker, left_out))]
    if not config.getoption("--thorough"):
        kept = sample_cases(kept)
    config.hook.pytest_deselected(items=list(set(items).difference(kept)))
    items[:] = kept
    if row := config.getoption("--shows"):
        items[:] = [item for item in items if any(row in mark.args for mark in item.iter_markers("shows"))]


def sample_cases(items: list[pytest.Item]) -> list[pytest.Item]:
    """Of each test with the mark ``sampled``, that many of its cases at equal distances, the first one included."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out = set[pytest.Item]()
    for group in cases.values():
        count = min(len(group), group[0].get_closest_marker("sampled").args[0])
        left_out.update(set(group) - {group[index * len(group) // count] for index in range(count)})
    return [item for item in items if item not in left_out]


def pytest_collection_finish() -> None:
    gc.freeze()
    # Tests make much and keep little: looking less often saves a tenth.
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
