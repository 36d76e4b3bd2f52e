"""OpenLDAP's slapd as a subprocess on loopback with a temporary folder."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from tests.http_server import loopback_socket, self_signed_certificate

SLAPD = shutil.which("slapd", path="/usr/sbin:/usr/lib/openldap:/usr/libexec:/usr/local/libexec:/usr/bin")
BASE = "dc=example"
PEOPLE, GROUPS, SERVICE = f"ou=people,{BASE}", f"ou=groups,{BASE}", f"cn=identity,{BASE}"
SERVICE_PASSWORD, PASSWORD = "of the service itself", "correct horse battery staple"

_CONF = """\
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
pidfile {folder}/slapd.pid
TLSCertificateFile {folder}/cert.pem
TLSCertificateKeyFile {folder}/key.pem
database mdb
suffix "{base}"
rootdn "cn=root,{base}"
rootpw {password}
directory {folder}/db
overlay memberof
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="{service}" read by * none
"""

_START = f"""\
dn: {BASE}
objectClass: domain
dc: example

dn: {PEOPLE}
objectClass: organizationalUnit
ou: people

dn: {GROUPS}
objectClass: organizationalUnit
ou: groups

dn: {SERVICE}
objectClass: person
cn: identity
sn: identity
userPassword: {SERVICE_PASSWORD}
"""


@dataclass(frozen=True)
class Slapd:
    """Addresses of a running slapd, and the CA of its certificate."""

    folder: Path
    plain_port: int
    tls_port: int

    @property
    def start_tls(self) -> str:
        return f"ldap://localhost:{self.plain_port}"

    @property
    def tls(self) -> str:
        return f"ldaps://localhost:{self.tls_port}"

    @property
    def ca_file(self) -> Path:
        return self.folder / "cert.pem"

    @property
    def password_file(self) -> Path:
        return self.folder / "password"

    def add(self, ldif: str) -> None:
        self._run("ldapadd", ldif)

    def modify(self, ldif: str) -> None:
        self._run("ldapmodify", ldif)

    def person(self, uid: str, password: str = PASSWORD, **attributes: str) -> str:
        """Add an entry for a user; returns the distinguished name."""
        dn = f"uid={uid},{PEOPLE}"
        values = {"cn": uid, "sn": "Lovelace", "givenName": "Ada", "userPassword": password} | attributes
        lines = [f"dn: {dn}", "objectClass: inetOrgPerson", f"uid: {uid}"]
        self.add("\n".join([*lines, *(f"{name}: {value}" for name, value in values.items())]) + "\n")
        return dn

    def group(self, name: str, *members: str) -> str:
        """Add a group; returns the distinguished name."""
        dn = f"cn={name},{GROUPS}"
        lines = [f"dn: {dn}", "objectClass: groupOfNames", f"cn: {name}", *(f"member: {member}" for member in members)]
        self.add("\n".join(lines) + "\n")
        return dn

    def remove(self, dn: str) -> None:
        self.modify(f"dn: {dn}\nchangetype: delete\n")

    def _run(self, program: str, ldif: str) -> None:
        command = [program, "-x", "-H", f"ldap://127.0.0.1:{self.plain_port}", "-D", f"cn=root,{BASE}", "-w", PASSWORD]
        subprocess.run(command, input=ldif.encode(), check=True, capture_output=True, timeout=30)


@contextmanager
def running(folder: Path) -> Iterator[Slapd]:
    """Run a server for the duration of the block."""
    (folder / "db").mkdir()
    pem = self_signed_certificate(folder).read_bytes()
    certificate = x509.load_pem_x509_certificate(pem)
    key = load_pem_private_key(pem, password=None)
    (folder / "cert.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (folder / "password").write_text(SERVICE_PASSWORD + "\n")
    (folder / "password").chmod(0o600)
    (folder / "slapd.conf").write_text(
        _CONF.format(folder=folder, base=BASE, password=PASSWORD.replace(" ", r"\ "), service=SERVICE).replace(
            "rootpw " + PASSWORD.replace(" ", r"\ "), f'rootpw "{PASSWORD}"'
        )
    )
    ports = []
    for _ in range(2):
        bound = loopback_socket()
        ports.append(bound.getsockname()[1])
        bound.close()
    urls = f"ldap://127.0.0.1:{ports[0]}/ ldaps://127.0.0.1:{ports[1]}/"
    command = [str(SLAPD), "-d", "0", "-f", str(folder / "slapd.conf"), "-h", urls]
    log = (folder / "log").open("wb")
    process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _wait_for(ports[0], process, folder)
        slapd = Slapd(folder, *ports)
        slapd.add(_START)
        yield slapd
    finally:
        process.terminate()
        process.wait(30)
        log.close()


def _wait_for(port: int, process: "subprocess.Popen[bytes]", folder: Path) -> None:
    for _ in range(200):
        if process.poll() is not None:
            raise AssertionError((folder / "log").read_text())
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("slapd does not come up")
