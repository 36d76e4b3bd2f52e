"""Selects the servers under test, and applies the ratings in docs/reference/servers.csv."""

import csv
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server_conformance.servers import QUICK, ROOT, SERVERS, ServerKind, ServerProcess, running

TABLE = ROOT / "docs" / "reference" / "servers.csv"
#: A test rated "no" must fail; one rated "mostly" may.
RATINGS = ("yes", "no", "mostly", "–")
#: Enough open files for 1,300 connections, in the tests and in the servers.
_FILES = 4096


def table(path: Path = TABLE) -> dict[str, dict[str, str]]:
    """The rows of a table by their first column; each maps server names to values."""
    with path.open(newline="") as file:
        rows = csv.DictReader(file)
        first = (rows.fieldnames or [""])[0]
        return {row.pop(first): row for row in rows}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"requirement(text): the row of {TABLE.name} that this test decides")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rows = table()
    for item in items:
        if (marker := item.get_closest_marker("requirement")) is None:
            continue
        name = item.callspec.params["kind"].name  # type: ignore[attr-defined]
        rating = rows[marker.args[0]][name]
        if rating == "–":
            item.add_marker(pytest.mark.skip(reason=f"does not apply to {name}"))
        elif rating != "yes":
            item.add_marker(pytest.mark.xfail(reason=f"{TABLE.name} says {rating}", strict=rating == "no"))


@pytest.fixture(scope="session", autouse=True)
def _open_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, enough), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _option(kind: ServerKind) -> tuple[pytest.MarkDecorator, ...]:
    """The marker of the option that selects the server."""
    if kind.name == QUICK:
        return ()
    return (pytest.mark.thorough if kind.name.startswith(QUICK) else pytest.mark.servers,)


@pytest.fixture(
    scope="module",
    params=[pytest.param(kind, id=kind.id, marks=_option(kind)) for kind in SERVERS.values()],
)
def kind(request: pytest.FixtureRequest) -> ServerKind:
    server_kind: ServerKind = request.param
    return server_kind


@pytest.fixture(scope="module")
def server(kind: ServerKind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A shared server, for tests that leave it unchanged."""
    with running(kind, tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def own_server(kind: ServerKind, tmp_path: Path) -> Iterator[ServerProcess]:
    """A server of its own, for tests that stop, kill or reload it."""
    with running(kind, tmp_path) as server:
        yield server
