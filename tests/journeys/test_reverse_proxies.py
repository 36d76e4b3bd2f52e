"""The proxies of docs/how-to/operators/reverse-proxy, verbatim, in front of a service on three hosts."""

import hashlib
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import urllib3.util.connection
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.requests_client import OAuth2Session
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from identity.domain.applications import ApplicationType
from identity.domain.permissions import Resource
from identity.testing.assembled_service import THREE_HOST_SETTINGS, RsaKeyPool
from identity.testing.clock import TickingClock
from identity.testing.fixtures import DatabaseFactory
from identity.testing.jwt_assertions import base64url
from identity.testing.world import World
from tests.asgi_server import serving_in_worker
from tests.external_programs import program
from tests.http_server import loopback_socket, self_signed_certificate
from tests.plugins.client_certificates import IssuedCertificate, issue
from tests.server_conformance.ambiguous_requests import CORPUS

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "how-to" / "operators" / "examples"
WAIT = 30
HOSTS = ("id.example.com", "api.example.com", "login.example.com", "mtls.example.com")


@dataclass(frozen=True)
class ProxyProcess:
    """A proxy with its documented configuration, in which only ports and files are replaced. ``mtls_example`` adds the
    host for client certificates.

    ``package`` is the Debian package. ``make_command`` starts the proxy in the foreground with the file in the
    folder.
    """

    example: str
    mtls_example: str
    package: str
    replaced: tuple[tuple[str, str], ...]
    make_command: Callable[[str, Path], list[str]]
    around: Callable[[str, Path], str] = lambda example, folder: example
    #: The status codes for an unsupported encoding, version or body.
    cannot: frozenset[bytes] = frozenset({b"501", b"505"})

    @property
    def name(self) -> str:
        return self.package.removesuffix("-light")


def _around_nginx(example: str, folder: Path) -> str:
    locations = "".join(
        f"{item}_temp_path {folder}/{item};\n" for item in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    # Its workers write to the folder, even if root starts it.
    user = "user root root; " if os.geteuid() == 0 else ""
    return f"{user}daemon off; pid {folder}/pid; events {{}}\nhttp {{ access_log off;\n{locations}{example}}}\n"


def _around_caddy(example: str, folder: Path) -> str:
    # Without the admin endpoint and the port for plain http.
    return example.replace("{\n", "{\n\tadmin off\n\tauto_https disable_redirects\n", 1)


PROGRAMS = {
    proxy_process.name: proxy_process
    for proxy_process in (
        ProxyProcess(
            "nginx.conf",
            "nginx-mtls.conf",
            "nginx-light",
            (
                ("listen 443 ssl;", "listen 127.0.0.1:{port} ssl;"),
                ("server 127.0.0.1:8080;", "server 127.0.0.1:{service};"),
                ("/etc/ssl/identity.crt", "{certificate}"),
                ("/etc/ssl/private/identity.key", "{certificate}"),
            ),
            lambda program, folder: [program, "-p", f"{folder}", "-c", f"{folder}/file", "-e", f"{folder}/errors.log"],
            _around_nginx,
        ),
        ProxyProcess(
            "haproxy.cfg",
            "haproxy-mtls.cfg",
            "haproxy",
            (
                ("bind :443 ", "bind 127.0.0.1:{port} "),
                ("127.0.0.1:8080", "127.0.0.1:{service}"),
                ("/etc/haproxy/identity.pem", "{certificate}"),
                ("bind :8443 ", "bind 127.0.0.1:{mtls_port} "),
                ("/etc/haproxy/clients.pem", "{certificate}"),
            ),
            lambda program, folder: [program, "-db", "-f", f"{folder}/file"],
        ),
        ProxyProcess(
            "Caddyfile",
            "Caddyfile-mtls",
            "caddy",
            (
                (
                    "id.example.com, api.example.com, login.example.com {{",
                    "id.example.com:{port}, api.example.com:{port}, login.example.com:{port} {{\n\tbind 127.0.0.1",
                ),
                ("mtls.example.com {{", "mtls.example.com:{port} {{\n\tbind 127.0.0.1"),
                (":443 {{", ":{port} {{\n\tbind 127.0.0.1"),
                ("127.0.0.1:8080", "127.0.0.1:{service}"),
                ("/etc/ssl/identity.crt", "{certificate}"),
                ("/etc/ssl/private/identity.key", "{certificate}"),
            ),
            lambda program, folder: [program, "run", "--adapter", "caddyfile", "--config", f"{folder}/file"],
            _around_caddy,
            frozenset({b"501", b"502", b"505"}),
        ),
    )
}


@dataclass
class Proxied:
    world: World
    port: int
    #: The paths and queries of the requests that reached the service.
    requests_seen: list[str]
    kind: ProxyProcess
    #: Where the proxy asks for certificates.
    mtls_port: int
    #: The certificate of the proxy, for all hosts.
    certificate: Path

    def request_token(self, client_id: str, host: str, chain: Path | None = None, **headers: str) -> int:
        """The status of a token request at this host with this certificate."""
        with closing(self._connect(host, chain)) as connection:
            form = urlencode({"grant_type": "client_credentials", "client_id": client_id})
            kind = {"Content-Type": "application/x-www-form-urlencoded"}
            connection.request("POST", "/oauth/v2/token", form, {"Host": host, **kind, **headers})
            return connection.getresponse().status

    def ask(self, host: str, path: str, *, method: str = "GET", body: bytes = b"", **headers: str) -> Any:
        with closing(self._connect(host)) as connection:
            # A client that is refused early may see the connection close with the response still unread.
            with suppress(ConnectionError, ssl.SSLEOFError):
                connection.request(method, path, body or None, {"Host": host, **headers})
            answer = connection.getresponse()
            answer.content = answer.read()  # type: ignore[attr-defined]
            return answer

    def _connect(self, host: str, chain: Path | None = None) -> http.client.HTTPConnection:
        """With server name indication, as Caddy requires if it asks for certificates at any host."""
        context, port = _trusting(), self.mtls_port if host == "mtls.example.com" else self.port
        if chain is not None:
            context.load_cert_chain(chain)
        connection = http.client.HTTPConnection("127.0.0.1")
        plain = socket.create_connection(("127.0.0.1", port), timeout=WAIT)
        connection.sock = context.wrap_socket(plain, server_hostname=host)
        return connection

    def say(self, request: bytes) -> bytes:
        """All data that the proxy sends back."""
        received = b""
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=WAIT)
        with _trusting().wrap_socket(plain, server_hostname="api.example.com") as connection, suppress(OSError):
            connection.sendall(request)
            while piece := connection.recv(65536):
                received += piece
        return received


def _trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _watched(app: Any, requests_seen: list[str]) -> Callable[..., Awaitable[None]]:
    async def watch(scope: dict[str, Any], receive: Any, send: Any) -> None:
        # Some proxies send health checks.
        if scope["type"] == "http" and (scope["path"] != "/healthz" or scope["query_string"]):
            query = scope["query_string"].decode()
            requests_seen.append(f"{scope['path']}?{query}" if query else scope["path"])
        await app(scope, receive, send)

    return watch


@pytest.fixture(
    scope="module",
    params=["nginx", *(pytest.param(name, marks=pytest.mark.thorough) for name in PROGRAMS if name != "nginx")],
)
def proxied(
    request: pytest.FixtureRequest,
    database_factory: DatabaseFactory,
    key_pool: RsaKeyPool,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Proxied]:
    """The storage does not matter to a proxy."""
    kind = PROGRAMS[request.param]
    path = program(kind.name, kind.package, missing="a proxy is not installed", option="IDENTITY_PROXY_TESTS")
    folder, bound, *fronts = tmp_path_factory.mktemp(kind.name), *(loopback_socket() for _ in range(3))
    port, mtls_port = (front.getsockname()[1] for front in fronts)
    for front in fronts:
        front.close()
    proxy_settings = {
        "identity.trusted_proxy": "127.0.0.1",
        "identity.plugin.mutual_tls.certificate_header": "X-SSL-Client-Cert",
        "identity.plugin.mutual_tls.base_url": "https://mtls.example.com",
    }
    world = World(
        database_factory.new_database_settings("memory") | THREE_HOST_SETTINGS | proxy_settings,
        clock=TickingClock(),
        key_pool=key_pool,
    )
    world.bootstrap()
    requests_seen: list[str] = []
    certificate = self_signed_certificate(folder, *HOSTS)
    with serving_in_worker(world.app, bound, around=lambda app: _watched(app, requests_seen)):
        service = bound.getsockname()[1]
        process = _start(kind, path, folder, certificate, port=port, mtls_port=mtls_port, service=service)
        yield Proxied(world, port, requests_seen, kind, mtls_port if kind.name == "haproxy" else port, certificate)
        process.terminate()
        # HAProxy exits with the signal.
        assert process.wait(WAIT) in (0, -signal.SIGTERM), (folder / "output.log").read_text()
    world.close()


def _start(kind: ProxyProcess, program: str, folder: Path, certificate: Path, **ports: int) -> subprocess.Popen[bytes]:
    text = "".join((EXAMPLES / name).read_text() for name in (kind.example, kind.mtls_example))
    for original, replacement in kind.replaced:
        placeholders = {**ports, "certificate": certificate}
        assert text.count(original.format(**placeholders)), original
        text = text.replace(original.format(**placeholders), replacement.format(**placeholders))
    (folder / "file").write_text(kind.around(text, folder))
    environ = {**os.environ, "HOME": str(folder)}
    with (folder / "output.log").open("wb") as output:
        process = subprocess.Popen(kind.make_command(program, folder), stdout=output, stderr=output, env=environ)
    give_up_at = time.monotonic() + WAIT
    while True:
        try:
            socket.create_connection(("127.0.0.1", ports["port"])).close()
        except OSError:
            assert process.poll() is None, (folder / "output.log").read_text()
            assert time.monotonic() < give_up_at
            time.sleep(0.05)
        else:
            return process


@pytest.mark.thorough
def test_proxy_serves_all_hosts_and_forwards_host(proxied: Proxied) -> None:
    document = json.loads(proxied.ask("id.example.com", "/.well-known/openid-configuration").content)
    assert document["issuer"] == "https://id.example.com"
    assert json.loads(proxied.ask("api.example.com", "/oauth/v2/keys").content)["keys"]
    assert proxied.ask("login.example.com", "/login").status in (200, 303)
    assert proxied.ask("elsewhere.example.com", "/login").status == 421


def test_internal_paths_are_not_proxied(proxied: Proxied) -> None:
    for path in ("/readyz", "/metrics", "/metrics?all"):
        assert proxied.ask("id.example.com", path).status == 403, path
    assert not {"/readyz", "/metrics", "/metrics?all"} & set(proxied.requests_seen)
    assert proxied.ask("id.example.com", "/healthz").status == 200


def test_logout_with_long_addresses(proxied: Proxied) -> None:
    """The response headers are larger than nginx's default buffer."""
    world = proxied.world
    bye = f"https://app.example/bye?{'x' * 1900}"
    client, session = world.make_web_application(post_logout_redirect_uris=(bye,)), world.make_browser_session()
    hint = world.obtain_tokens(client, session, scope="openid")["id_token"]
    query = urlencode({"id_token_hint": hint, "post_logout_redirect_uri": bye, "state": "ä" * 1000})
    answer = proxied.ask("login.example.com", f"/oauth/v2/endsession?{query}", **session.headers)
    assert answer.status == 303
    assert answer.headers["Location"].startswith(bye)
    assert len(answer.headers["Location"]) > 7000


def test_long_authorization_request(proxied: Proxied) -> None:
    query = urlencode({"client_id": "none", "state": "x" * 2048, "nonce": "y" * 2048, "ui_locales": "z" * 9000})
    answer = proxied.ask("login.example.com", f"/oauth/v2/authorize?{query}")
    assert answer.status == 400
    assert b"This application is unknown" in answer.content


def test_large_bodies(proxied: Proxied) -> None:
    path = "/oauth/v2/token"
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    within = proxied.ask("api.example.com", path, method="POST", body=b"x" * 60_000, **form)
    assert within.status == 400
    over = proxied.ask("api.example.com", path, method="POST", body=b"x" * 900_000, **form)
    assert over.status == 413


@pytest.mark.thorough
def test_proxy_accepts_large_import_documents(proxied: Proxied) -> None:
    """From an authorized client; neither proxy nor service stores other bodies."""
    path, host = "/management/v1/organizations/import", "api.example.com"
    user = {"given_name": "A" * 100, "family_name": "B" * 100}
    users = [{"user_name": f"u{number}", **user} for number in range(8000)]
    head = {"format": "identity-organization", "version": 1, "instance": "01980000-0000-7000-8000-000000000000"}
    organization = {"name": "Large", "primary_domain": "large.example.com", "users": users}
    body = json.dumps({**head, "organization": organization}).encode()
    token = proxied.world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE).management_token()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    answer = proxied.ask(host, path, method="POST", body=body, **headers)
    assert answer.status == 201, answer.content
    created = json.loads(answer.content)
    answer = proxied.ask(host, f"/management/v1/organizations/{created['id']}/export", method="POST", **headers)
    assert len(json.loads(answer.content)["organization"]["users"]) == 8000
    lines = "".join(f"v{number},{'A' * 100},{'B' * 100}\n" for number in range(8000))
    csv = f"user_name,given_name,family_name\n{lines}".encode()
    path_of_people = f"/management/v1/organizations/{created['id']}/user-imports?dry_run=true"
    answer = proxied.ask(host, path_of_people, method="POST", body=csv, **headers | {"Content-Type": "text/csv"})
    assert answer.status == 201, answer.content
    # All of it is sent: Caddy responds once a read of the body succeeds.
    refused = proxied.ask(host, path, method="POST", body=bytes(100_000_000))
    assert refused.status == 401


def test_client_address_comes_from_the_proxy(proxied: Proxied) -> None:
    """The client cannot set it."""
    world = proxied.world
    robot = world.make_service_user_program()
    assertion = robot.assertion(aud="https://elsewhere.example")
    form = urlencode({"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": assertion})
    headers = {"Content-Type": "application/x-www-form-urlencoded", "X-Forwarded-For": "192.0.2.66"}
    answer = proxied.ask("api.example.com", "/oauth/v2/token", method="POST", body=form.encode(), **headers)
    assert answer.status == 400
    with world.read_only_services() as services:
        newest = services.storage.audit.page().items[0]
    assert newest.actor.client_address == "127.0.0.1"


@pytest.mark.thorough
def test_proxy_passes_client_certificates(proxied: Proxied, tmp_path: Path) -> None:
    """RFC 8705; only its own, whatever header the client sends."""
    world, certificate = proxied.world, issue(proxied.world.clock())
    chain, other = tmp_path / "client.pem", tmp_path / "other.pem"
    for path, issued in ((chain, certificate), (other, issue(world.clock()))):
        _write_chain(path, issued)
    application, _ = world.register_application(
        type=ApplicationType.API,
        authentication_method="self_signed_tls_client_auth",
        grant_types=frozenset({"client_credentials"}),
        jwks=json.dumps({"keys": [certificate.jwk]}),
    )
    assert proxied.request_token(application.id, "mtls.example.com", chain) == 200
    forged = {"X-SSL-Client-Cert": certificate.base64}
    assert proxied.request_token(application.id, "mtls.example.com", chain, **forged) == 200
    for host in ("mtls.example.com", "api.example.com"):
        for presented in (None, other):
            for name in ("X-SSL-Client-Cert", "X_SSL_Client_Cert", "x-ssl-client-cert"):
                status = proxied.request_token(application.id, host, presented, **{name: certificate.base64})
                assert status in (400, 401), (host, presented, name)
    assert proxied.request_token(application.id, "api.example.com", chain) == 401


def _write_chain(path: Path, issued: IssuedCertificate) -> None:
    """Key and certificate."""
    key = issued.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_text(key.decode() + issued.pem)


@pytest.mark.thorough
def test_authlib_authenticates_with_its_certificate(
    proxied: Proxied, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the address that discovery names, behind the documented proxy; its token is bound to the certificate."""
    world, certificate, chain = proxied.world, issue(proxied.world.clock()), tmp_path / "client.pem"
    _write_chain(chain, certificate)
    application, _ = world.register_application(
        type=ApplicationType.API,
        authentication_method="self_signed_tls_client_auth",
        grant_types=frozenset({"client_credentials"}),
        jwks=json.dumps({"keys": [certificate.jwk]}),
        required_sender_constraint="mutual_tls",
    )
    connect = urllib3.util.connection.create_connection

    def connect_to_proxy(address: tuple[str, int], *args: Any, **options: Any) -> socket.socket:
        port = proxied.mtls_port if address[0] == "mtls.example.com" else proxied.port
        return connect(("127.0.0.1", port), *args, **options)

    monkeypatch.setattr(urllib3.util.connection, "create_connection", connect_to_proxy)
    with OAuth2Session(application.id, token_endpoint_auth_method="none", default_timeout=WAIT) as session:
        session.trust_env, session.verify = False, str(proxied.certificate)
        discovery = session.get("https://id.example.com/.well-known/openid-configuration", withhold_token=True).json()
        addresses = discovery["mtls_endpoint_aliases"]
        url = addresses["token_endpoint"]
        with pytest.raises(AuthlibBaseError, match="invalid_client"):
            session.fetch_token(url, grant_type="client_credentials")
        session.cert = str(chain)
        token = session.fetch_token(url, grant_type="client_credentials")["access_token"]
        introspected = session.introspect_token(addresses["introspection_endpoint"], token=token).json()
    thumbprint = base64url(hashlib.sha256(certificate.der).digest())
    assert introspected["cnf"] == {"x5t#S256": thumbprint}


@pytest.mark.thorough
def test_proxies_prevent_request_smuggling(proxied: Proxied) -> None:
    """The service sees each request at most once, and the one after it only if the proxy has answered both.

    Responses alone do not prove it: a proxy forwards the head of a refused request a moment later, so the service
    may see it after the client has the response, and the response to a large request may be lost. So each request
    has a number.
    """
    proxied.requests_seen.clear()
    answers = []
    for number, request in enumerate(CORPUS.values()):
        numbered_request = re.sub(rb"/oauth/v2/token|/healthz", rb"\g<0>?%d" % number, request, count=1)
        behind = b"GET /behind?%d HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\r\n" % number
        answered = proxied.say(numbered_request.replace(b"Host: x", b"Host: api.example.com") + behind)
        answers.append(re.findall(rb"HTTP/1\.[01] (\d\d\d) ", answered))
    assert proxied.ask("api.example.com", "/end").status == 404
    for number, (name, statuses) in enumerate(zip(CORPUS, answers, strict=True)):
        own_number = [address for address in proxied.requests_seen if address.endswith(f"?{number}")]
        assert len(own_number) == len(set(own_number)), name
        assert len(statuses) == 2 or f"/behind?{number}" not in own_number, (name, statuses)
        assert {status for status in statuses if status.startswith(b"5")} <= proxied.kind.cannot, (name, statuses)
    assert all(
        re.fullmatch(r"/(oauth/v2/token|healthz|behind)\?\d+|/end", address) for address in proxied.requests_seen
    )


def _tls(port: int) -> ssl.SSLSocket:
    with ExitStack() as stack:
        plain = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=WAIT))
        wrapped = _trusting().wrap_socket(plain, server_hostname="id.example.com", do_handshake_on_connect=False)
        stack.enter_context(wrapped)
        wrapped.do_handshake()
        stack.pop_all()
        return wrapped


@pytest.mark.thorough
def test_slow_header_is_cut_off(proxied: Proxied) -> None:
    """No web server in docs/reference/servers does this."""
    with _tls(proxied.port) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: id.example.com\r\n")
        connection.settimeout(1)
        give_up_at = time.monotonic() + 2 * WAIT
        with suppress(ConnectionError, ssl.SSLEOFError):
            while time.monotonic() < give_up_at:
                connection.sendall(b"X: y\r\n")
                with suppress(TimeoutError):
                    if not connection.recv(65536):
                        break
        assert time.monotonic() < give_up_at


@pytest.mark.thorough
def test_stalled_body_is_cut_off(proxied: Proxied) -> None:
    with _tls(proxied.port) as connection:
        connection.sendall(b"POST /oauth/v2/token HTTP/1.1\r\nHost: id.example.com\r\nContent-Length: 9\r\n\r\n")
        connection.settimeout(3 * WAIT)
        with suppress(ConnectionError, ssl.SSLEOFError):
            while connection.recv(65536):
                pass


# Python leaks a socket that is reset during the TLS handshake.
@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.*unclosed <ssl.SSLSocket:ResourceWarning")
@pytest.mark.filterwarnings("ignore:Exception ignored in. <ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning")
def test_connections_of_an_address_are_limited(proxied: Proxied) -> None:
    if proxied.kind.name == "caddy":
        pytest.skip("Caddy has no such limit; the page says so")
    with ExitStack() as stack:
        connections: list[ssl.SSLSocket] = []
        refused = 0
        for _ in range(60):
            # A handshake can take long under load. Without new data, the proxy would close the first connections.
            for connection in connections:
                with suppress(OSError):
                    connection.sendall(b"x")
            try:
                connection = stack.enter_context(_tls(proxied.port))
                connection.sendall(
                    b"POST /oauth/v2/token HTTP/1.1\r\nHost: id.example.com\r\nContent-Length: 9999\r\n\r\n"
                )
            except (ConnectionError, ssl.SSLEOFError):
                refused += 1
            else:
                connections.append(connection)
        # nginx refuses the request after its head, HAProxy the connection.
        with suppress(OSError):
            refused += connections[-1].recv(65536).startswith(b"HTTP/1.1 503 ")
        assert refused
