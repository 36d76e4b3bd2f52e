"""Traces: spans of requests, trusted trace context, and no values in attributes."""

import json
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from identity.http.environ_keys import PEER_KEY
from identity.plugin_host import PluginHost
from identity.settings_parser import InvalidSetting
from identity.testing.browser import PASSWORD, Browser, set_password
from identity.testing.fixtures import WorldFactory
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.house.service_processes import DEVELOPMENT, ServiceProcess, free_port

PROXY = "192.0.2.7"
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Collector:
    """An OTLP collector on a loopback port."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.bodies = b""
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") is None:
                    collector.bodies += body
                    export_request = ExportTraceServiceRequest.FromString(body)
                    for resource in export_request.resource_spans:
                        for scope in resource.scope_spans:
                            collector.spans += scope.spans
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1/traces"

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans if span.name == name]


@pytest.fixture
def collector() -> Iterator[Collector]:
    fake_collector = Collector()
    yield fake_collector
    fake_collector.server.shutdown()
    fake_collector.thread.join()
    fake_collector.server.server_close()


def make_traced_world(make_world: WorldFactory, collector: Collector, **more: str) -> World:
    settings = {"endpoint": collector.url, "per_thousand": "1000", **more}
    plugin_settings = {f"identity.plugin.tracing.{name}": value for name, value in settings.items()}
    return make_world(**plugin_settings, **{"identity.trusted_proxy": PROXY})


def expected_statements(world: World) -> tuple[str, ...]:
    """Names of the expected statement spans; none for memory."""
    if world.identity.backend.name == "memory":
        return ()
    # On PostgreSQL one statement stores the token and the jti of its assertion.
    is_postgresql = world.settings["identity.plugin.sql.url"].startswith("postgresql")
    return ("SELECT", "WITH" if is_postgresql else "INSERT", "COMMIT")


def members(span: Any) -> dict[str, Any]:
    return {attribute.key: attribute.value.string_value or attribute.value.int_value for attribute in span.attributes}


@pytest.mark.thorough
def test_request_span_contains_signatures_and_statements(make_world: WorldFactory, collector: Collector) -> None:
    world = make_traced_world(make_world, collector)
    robot = world.make_service_user_program()
    with world.identity.lifespan():
        answer = robot.request_token()
    [request] = collector.named("POST protocol.token")
    attributes = members(request)
    assert attributes["http.response.status_code"] == 200
    assert attributes["identity.request_id"] == answer.headers["X-Request-ID"]
    below = [span for span in collector.spans if span.parent_span_id == request.span_id]
    names = {span.name for span in below}
    assert {"signature", *(f"statement {item}" for item in expected_statements(world))} <= names
    for span in below:
        assert span.trace_id == request.trace_id
        assert request.start_time_unix_nano - 10_000_000 <= span.start_time_unix_nano <= span.end_time_unix_nano


def test_spans_contain_no_values(make_world: WorldFactory, collector: Collector) -> None:
    world = make_traced_world(make_world, collector)
    person = world.make_human_user()
    name = set_password(world, person)
    party = RelyingParty.register(world, name="Invoices")
    with world.identity.lifespan():
        browser = Browser(world)
        browser.open(party.new_request().url, initiator=party.origin)
        browser.sign_in(name, PASSWORD)
        world.make_service_user_program().access_token()
    assert collector.named("hash")
    assert (b"db.query.text" in collector.bodies) is bool(expected_statements(world))
    for secret in {name, PASSWORD, person.id, *world.client.secrets}:
        assert secret.encode() not in collector.bodies


def test_trace_context_requires_trusted_proxy(make_world: WorldFactory, collector: Collector) -> None:
    world = make_traced_world(make_world, collector)
    with world.identity.lifespan():
        for peer in (PROXY, "192.0.2.8"):
            sent = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
            world.client.request("GET", f"{world.issuer}/healthz", headers=sent, environ={PEER_KEY: peer})
    trusted, stranger = collector.named("GET healthz")
    assert (trusted.trace_id.hex(), trusted.parent_span_id.hex()) == (TRACE, PARENT)
    assert stranger.trace_id.hex() != TRACE
    assert not stranger.parent_span_id


def test_zero_sample_rate_exports_nothing(make_world: WorldFactory, collector: Collector) -> None:
    world = make_traced_world(make_world, collector, per_thousand="0")
    with world.identity.lifespan():
        world.client.get(f"{world.issuer}/healthz")
    assert collector.spans == []


@pytest.mark.thorough
def test_unreachable_collector_does_not_affect_requests(make_world: WorldFactory, collector: Collector) -> None:
    world = make_traced_world(make_world, collector, endpoint="http://127.0.0.1:1/v1/traces")
    with world.identity.lifespan():
        assert world.client.get(f"{world.issuer}/healthz").status_int == 200
    assert json.loads(world.client.get(f"{world.issuer}/healthz").text) == {"status": "alive"}


@pytest.mark.parametrize("endpoint", ["127.0.0.1:4318", "ftp://example.com", "http://", "http://[::1"])
def test_endpoint_setting_must_be_a_url(endpoint: str) -> None:
    with pytest.raises(InvalidSetting, match=r"tracing\.endpoint"):
        PluginHost.load(["tracing"], {"tracing": {"endpoint": endpoint}})


def test_missing_library_error_names_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("identity.plugins.tracing.find_spec", lambda name: None)
    with pytest.raises(InvalidSetting, match="the extra tracing of this package"):
        PluginHost.load(["tracing"], {"tracing": {"endpoint": "http://127.0.0.1:4318/v1/traces"}})


@pytest.mark.thorough
def test_log_lines_of_forked_workers_name_request_and_trace(tmp_path: Path, collector: Collector) -> None:
    text = DEVELOPMENT.read_text().replace("%(here)s", str(tmp_path)).replace("PlainFormatter", "JsonFormatter")
    settings_lines = f"identity.plugin.tracing.endpoint = {collector.url}\nidentity.plugin.tracing.per_thousand = 1000"
    ini, log = tmp_path / "development.ini", tmp_path / "log"
    ini.write_text(text.replace("identity.plugin.tracing.endpoint =", settings_lines))
    command = [str(Path(sys.executable).with_name("identity")), "serve", "-c", str(ini)]
    with log.open("w") as output:
        process = subprocess.Popen([*command, f"http_port={(port := free_port())}"], stdout=output, stderr=output)
    served = ServiceProcess(process, port, log)

    def request_id_of_discovery() -> str:
        request = urllib.request.Request(f"http://localhost:{port}/.well-known/openid-configuration")
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            request_id: str = answer.headers["X-Request-ID"]
        return request_id

    try:
        served.wait()
        ids = {request_id_of_discovery() for _ in range(30)}
    finally:
        assert served.stop() == 0
    lines = [json.loads(line) for line in served.output.splitlines() if line.startswith('{"time"')]
    watched = [
        line for line in lines if line["logger"] == "identity.http.access_log" and "/.well-known" in line["message"]
    ]
    logged = {line["request_id"]: line["trace_id"] for line in watched}
    spans = collector.named("GET protocol.metadata")
    assert {members(span)["identity.request_id"]: span.trace_id.hex() for span in spans} == logged
    assert set(logged) == ids
    assert len(set(logged.values())) == len(ids)


@pytest.mark.filterwarnings("ignore:Unknown REQUEST_METHOD")
def test_spans_omit_hostile_methods_and_paths(make_world: WorldFactory, collector: Collector) -> None:
    """Security 20.10."""
    world, evil = make_traced_world(make_world, collector), "evil-7f3a"
    with world.identity.lifespan():
        for path in (f"/{evil}", "/healthz"):
            world.client.app.request(path, method=evil.upper(), headers={"User-Agent": evil}, expect_errors=True)
    assert {span.name for span in collector.spans if span.name.startswith("_OTHER")} >= {"_OTHER"}
    assert evil.encode() not in collector.bodies.lower()
