"""The access log line of a request contains only text of the service, never text of the request (security 20.10)."""

import logging
import re

import pytest

from identity.testing.fixtures import WorldFactory

LINE = re.compile(r"(GET|POST|_OTHER) (no route|/\S*) \d{3}, \d+ ms")


@pytest.mark.filterwarnings("ignore:Unknown REQUEST_METHOD")
@pytest.mark.storages("memory")
def test_request_log_quotes_nothing_of_a_request(make_world: WorldFactory, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="identity.http.access_log")
    app, evil = make_world().client.app, "evil-7f3a"
    for path in (f"/{evil}", f"/{evil}/more", f"/login/{evil}", f"/healthz?{evil}"):
        for method in ("GET", "POST", evil.upper()):
            app.request(path, method=method, headers={"X-Request-ID": evil, "User-Agent": evil}, expect_errors=True)
    lines = [record.getMessage() for record in caplog.records if record.name == "identity.http.access_log"]
    assert len(lines) == 12
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    assert evil not in "\n".join(lines).lower()
