"""A WSGI application behind a real HTTP server, with or without TLS, for external clients."""

import datetime
import io
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from waitress import wasyncore
from waitress.server import create_server


def loopback_socket() -> socket.socket:
    """A socket bound to a free loopback port, which is reserved from then on."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.bind(("127.0.0.1", 0))
    return bound


@contextmanager
def running_http_server(app: Any, bound: socket.socket, **settings: Any) -> Iterator[None]:
    """Serve the application on the socket with waitress, in a thread, within the block; settings are waitress's."""
    bound.listen(1024)
    options = {"threads": 4, "ident": None, "clear_untrusted_proxy_headers": False, **settings}
    server = create_server(app, sockets=[bound], **options)
    thread = threading.Thread(target=server.run, name="http-server", daemon=True)
    thread.start()
    try:
        yield
    finally:
        # Its loop ends when no socket is left.
        server.trigger.pull_trigger(partial(wasyncore.close_all, server._map))
        thread.join(30)
        server.task_dispatcher.shutdown(timeout=1)
        bound.close()


class _TlsServer(ThreadingMixIn, WSGIServer):
    """One thread per request; closing waits for all of them."""

    daemon_threads = False


class _TlsRequestHandler(WSGIRequestHandler):
    """Marks requests as TLS, and does not log them."""

    timeout = 30

    def get_environ(self) -> dict[str, Any]:
        return {**super().get_environ(), "HTTPS": "on"}

    def log_message(self, *args: object) -> None:
        pass


def _with_whole_body(app: Any) -> Any:
    """The application with an input that ends with the body, as in other servers."""

    def read_first(environ: dict[str, Any], start_response: Any) -> Any:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        return app({**environ, "wsgi.input": io.BytesIO(body)}, start_response)

    return read_first


@contextmanager
def running_https_server(app: Any, bound: socket.socket, certificate: Path) -> Iterator[None]:
    """Serve the application over TLS on the socket within the block; the file holds certificate and key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    host, port = bound.getsockname()
    server = _TlsServer((host, port), _TlsRequestHandler, bind_and_activate=False)
    server.socket.close()
    # A client that connects and sends nothing blocks only its own thread, not the accepting one.
    server.socket = context.wrap_socket(bound, server_side=True, do_handshake_on_connect=False)
    server.server_name, server.server_port = host, port
    server.setup_environ()
    server.set_app(_with_whole_body(app))
    server.server_activate()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="https-server")
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def self_signed_certificate(folder: Path, *hosts: str) -> Path:
    """A new self-signed certificate for loopback names and the hosts, with its key in the same file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName(
        [*map(x509.DNSName, ("localhost", *hosts)), x509.IPAddress(ipaddress.IPv4Address("127.0.0.1"))]
    )
    usage = dict.fromkeys(
        (
            "content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "crl_sign", "encipher_only",
            "decipher_only",
        ),
        False,
    )  # fmt: skip
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.KeyUsage(digital_signature=True, key_cert_sign=True, **usage), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "certificate.pem"
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(pem + certificate.public_bytes(Encoding.PEM))
    return path
