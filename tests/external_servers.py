"""A real DNS server and a real web server on the loopback interface, for what the service looks up or fetches."""

import datetime
import ssl
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingUDPServer
from typing import Any

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

LOOPBACK = "127.0.0.1"


class NameServer:
    """A DNS server over UDP. ``records`` maps name and type to the successive answers; the last one repeats."""

    def __init__(self) -> None:
        self.records: dict[tuple[str, str], list[list[str]]] = {}
        self.requests: list[tuple[str, str]] = []
        #: While cleared, the server does not respond.
        self.answering = threading.Event()
        self.answering.set()
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseRequestHandler):
            def handle(self) -> None:
                wire, sock = self.request
                outer.answering.wait(30)
                sock.sendto(outer._answer(wire), self.client_address)

        self._server = ThreadingUDPServer((LOOPBACK, 0), Handler)
        self.address = f"{LOOPBACK}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def set(self, name: str, kind: str, *turns: Iterable[str]) -> None:
        self.records[name, kind] = [list(turn) for turn in turns]

    def prove(self, domain: Any) -> None:
        """Publish the record of a domain as the API shows it."""
        self.set(domain["record_name"], "TXT", [domain["record_value"]])

    def close(self) -> None:
        self.answering.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, wire: bytes) -> bytes:
        query = dns.message.from_wire(wire)
        [question] = query.question
        name, kind = question.name.to_text(omit_final_dot=True), dns.rdatatype.to_text(question.rdtype)
        answer = dns.message.make_response(query)
        answer.flags |= dns.flags.RA
        with self._lock:
            self.requests.append((name, kind))
            turns = self.records.get((name, kind), [[]])
            values = turns.pop(0) if len(turns) > 1 else turns[0]
        texts = [f'"{value}"' if kind == "TXT" else value for value in values]
        if texts:
            answer.answer.append(dns.rrset.from_text_list(question.name, 0, "IN", kind, texts))
        elif not any(known == name for known, _ in self.records):
            answer.set_rcode(dns.rcode.NXDOMAIN)
        return answer.to_wire()


class WebServer:
    """An HTTPS server for the names in its certificate. ``files`` maps host and path to status, headers and body."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.files: dict[tuple[str, str], tuple[int, dict[str, str], bytes]] = {}
        #: The host and path of each request, and the number of connections.
        self.received: list[tuple[str, str]] = []
        self.connections = 0
        self.certificate = _certificate(folder, names)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                target = self.headers["Host"].partition(":")[0], self.path
                outer.received.append(target)
                status, headers, body = outer.files.get(target, (404, {}, b""))
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def get_request(self) -> Any:
                outer.connections += 1
                return super().get_request()

            def handle_error(self, *where: object) -> None:
                pass

        self._server = Server((LOOPBACK, 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _certificate(folder: Path, names: Iterable[str]) -> Path:
    """A file with a new self-signed certificate for these names, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Tests")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "certificate.pem"
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(certificate.public_bytes(Encoding.PEM) + pem)
    return file
