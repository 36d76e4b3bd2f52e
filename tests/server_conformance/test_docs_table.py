"""The table in docs/reference/servers.rst has exactly one row for each test in this folder."""

import re
from pathlib import Path

from tests.server_conformance.ambiguous_requests import CORPUS
from tests.server_conformance.conftest import RATINGS, TABLE, table
from tests.server_conformance.servers import SERVERS

OUTCOMES = {"refused", "closed", "read", "waits", "varies", "answered twice", "refused twice"}


def test_each_row_is_decided_by_a_test() -> None:
    sources = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert sorted(table()) == sorted(re.findall(r'requirement\("([^"]+)"\)\n', sources))


def test_each_server_has_a_rating_in_each_row() -> None:
    for name, row in table().items():
        assert set(row) == set(SERVERS), name
        assert set(row.values()) <= set(RATINGS), name


def test_framing_exceptions_are_of_the_corpus() -> None:
    for name, row in table(TABLE.with_name("servers_framing.csv")).items():
        assert name in CORPUS
        assert set(row) == set(SERVERS), name
        assert set(row.values()) <= OUTCOMES, name
