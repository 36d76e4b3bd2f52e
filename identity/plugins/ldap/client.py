"""LdapClient finds entries by login name and verifies passwords (RFC 4511 §4.2, RFC 4513 §5.1)."""

import logging
import re
import socket
import ssl
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from identity.api.crypto import new_token
from identity.api.pages import gettext_lazy as _
from identity.api.plugins import FairSemaphore, InvalidSetting, NoFreeSlot
from identity.api.sign_in import DirectoryUnavailable
from identity.plugins.ldap.settings import LOGIN_PLACEHOLDER, LdapPluginSettings

if TYPE_CHECKING:
    from ldap3 import Connection

log = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")

#: Timeout of each response, and the limit of concurrent requests; one network may use a quarter of them.
TIMEOUT_SECONDS = 5
_MAX_CONCURRENT_REQUESTS = 16
#: Timeout of requests whose result is not needed, and how long they skip an unavailable directory.
_SHORT_TIMEOUT_SECONDS = 1
_RETRY_AFTER_SECONDS = 60.0
_LONGEST = 500
#: Names of attributes (RFC 4512 §1.4, §2.5) without options; "*" would ask for all of them.
_ATTRIBUTE = re.compile(r"[A-Za-z][A-Za-z0-9-]*|[0-9]+(?:\.[0-9]+)+")
_PASSWORD_ATTRIBUTES = frozenset({"userpassword", "authpassword", "unicodepwd"})
_PORTS = {"ldap": 389, "ldaps": 636}


class _LdapServer(NamedTuple):
    """A server and its response timeout in seconds."""

    address: str
    seconds: int


@dataclass(frozen=True)
class LdapEntry:
    """An entry of the directory. ``id`` never changes; names of ``attributes`` are in lower case. ``login`` is the name
    by which it was found."""

    id: str
    dn: str
    login: str
    attributes: Mapping[str, str]
    groups: tuple[str, ...]


class LdapClient:
    """One per process. Each request has its own connection, so that binds cannot be confused."""

    def __init__(self, settings: LdapPluginSettings) -> None:
        self._settings = settings
        # All requests belong to one organization.
        self._slots = FairSemaphore(_MAX_CONCURRENT_REQUESTS, by_organization=False)
        self._failed_at = -_RETRY_AFTER_SECONDS

    def find_entry(self, login: str) -> LdapEntry | None:
        """The entry with this name; None if several match. Raises DirectoryUnavailable if no server responds, or the
        limit of requests is reached."""
        from ldap3.utils.conv import escape_filter_chars

        if not login or len(login) > _LONGEST:
            return None
        return self._query_servers(lambda server: self._search_entry(server, escape_filter_chars(login), login))

    def find_entry_by_id(self, entry_id: str) -> LdapEntry | None:
        """The entry with this id, if the filter accepts it with any name. Raises DirectoryUnavailable."""
        escaped = "".join(f"\\{byte:02x}" for byte in bytes.fromhex(entry_id))
        condition = f"({self._settings.id_attribute}={escaped})"
        return self._query_servers(lambda server: self._search_entry(server, "*", "", condition))

    def verify_password(self, entry: LdapEntry | None, password: str) -> bool:
        """Whether this is the entry's password; for None, a bind with a random password, which fails. Raises
        DirectoryUnavailable. An empty password is never sent: an unauthenticated bind succeeds (RFC 4513 §5.1.2)."""
        is_real = entry is not None and 0 < len(password) <= _LONGEST and "\0" not in password
        dn, tried = (entry.dn, password) if entry is not None and is_real else (self._dummy_entry, new_token())
        return self._query_servers(lambda server: self._can_bind(server, dn, tried)) and is_real

    def read_values(self, entry: LdapEntry, names: Collection[str]) -> Mapping[str, list[str]]:
        """The values of these attributes of the entry, under the given names; those that it lacks, and names that are
        no attributes or those of passwords, are left out. Raises DirectoryUnavailable."""
        readable = [name for name in names if _ATTRIBUTE.fullmatch(name) and name.lower() not in _PASSWORD_ATTRIBUTES]
        return self._query_servers(lambda server: self._read_values(server, entry.dn, readable)) if readable else {}

    def simulate_query(self, login: str) -> None:
        """Take as long as ``find_entry`` and ``verify_password``, but give up soon, and at once while no server
        responds, because other accounts must not wait for the directory."""
        if monotonic() - self._failed_at < _RETRY_AFTER_SECONDS:
            return
        with suppress(DirectoryUnavailable):
            self._query_servers(lambda server: self._simulate_bind(server, login), seconds=_SHORT_TIMEOUT_SECONDS)

    def check_servers(self) -> list[tuple[str, str]]:
        """Each server, and why a sign-in would fail there; empty if it would not. Raises DirectoryUnavailable if the
        limit of requests is reached."""
        leave = self._acquire_slot()
        try:
            return [
                (address, self._find_problem(_LdapServer(address, TIMEOUT_SECONDS)))
                for address in self._settings.servers
            ]
        finally:
            leave()

    def _acquire_slot(self) -> "Callable[[], None]":
        try:
            return self._slots.acquire()
        except NoFreeSlot:
            raise DirectoryUnavailable("too many ask the directory") from None

    def _find_problem(self, server: "_LdapServer") -> str:
        from ldap3.core.exceptions import LDAPException
        from pyasn1.error import PyAsn1Error

        settings = self._settings
        stages: list[str] = [_TRUSTING]
        parts = urlsplit(server.address)
        try:
            socket.getaddrinfo(parts.hostname, parts.port or _PORTS[parts.scheme], type=socket.SOCK_STREAM)
        except (OSError, ValueError, OverflowError):
            return _("There is no host of this name.")
        try:
            password = settings.password()
        except InvalidSetting:
            return _("The service cannot read the file with its password.")
        try:
            with self._bind(server, settings.bind_dn, password, stages.append) as connection:
                if connection is None:
                    return _("The server refuses the service's DN or password.")
                stages.append(_SEARCHING)
                search_filter = settings.filter.replace(LOGIN_PLACEHOLDER, "*")
                connection.search(settings.base, search_filter, attributes=[settings.id_attribute], size_limit=1)
                code = connection.result.get("description")
                entries = [item for item in connection.response or () if item.get("type") == "searchResEntry"]
        except (LDAPException, PyAsn1Error, OSError, *_PROTOCOL_ERRORS):
            return stages[-1]
        if code == "noSuchObject":
            return _("There is no entry {dn}, or the service may not see it.", dn=settings.base)
        if code not in _EMPTY_RESULT_CODES:
            return _SEARCHING
        if not entries:
            return _("The filter finds no users below {dn}.", dn=settings.base)
        if self._entry(entries[0], "") is None:
            return _("Entries have no {attribute}.", attribute=settings.id_attribute)
        return ""

    def _query_servers(self, question: "Callable[[_LdapServer], ResultT]", *, seconds: int | None = None) -> "ResultT":
        from ldap3.core.exceptions import LDAPException
        from pyasn1.error import PyAsn1Error

        leave = self._acquire_slot()
        try:
            for address in self._settings.servers:
                try:
                    return question(_LdapServer(address, TIMEOUT_SECONDS if seconds is None else seconds))
                except (LDAPException, PyAsn1Error, OSError, InvalidSetting, *_PROTOCOL_ERRORS) as problem:
                    log.warning("the directory %s does not answer as it should: %s", address, type(problem).__name__)
        finally:
            leave()
        self._failed_at = monotonic()
        raise DirectoryUnavailable("no server of the directory answers")

    def _simulate_bind(self, server: "_LdapServer", login: str) -> None:
        from ldap3.utils.conv import escape_filter_chars

        self._search_entry(server, escape_filter_chars(login[:_LONGEST]), login)
        self._can_bind(server, self._dummy_entry, new_token())

    @property
    def _dummy_entry(self) -> str:
        return f"cn=nobody,{self._settings.base}"

    def _search_entry(self, server: "_LdapServer", pattern: str, login: str, condition: str = "") -> LdapEntry | None:
        """The only entry that matches the filter and the condition."""
        from ldap3.core.exceptions import LDAPException

        settings = self._settings
        attributes = [line.partition("=")[2] for line in settings.attributes]
        search_filter = settings.filter.replace(LOGIN_PLACEHOLDER, pattern)
        with self._bind_as_service(server) as connection:
            found = connection.search(
                settings.base,
                f"(&{condition}{search_filter})" if condition else search_filter,
                attributes=[*attributes, settings.id_attribute, settings.groups_attribute],
                size_limit=2,
            )
            entries = [item for item in connection.response or () if item.get("type") == "searchResEntry"]
            if not found and connection.result.get("description") not in _EMPTY_RESULT_CODES:
                raise LDAPException("the search failed")
        # Two matches are ambiguous.
        return self._entry(entries[0], login) if len(entries) == 1 else None

    def _read_values(self, server: "_LdapServer", dn: str, names: list[str]) -> Mapping[str, list[str]]:
        from ldap3.core.exceptions import LDAPException

        with self._bind_as_service(server) as connection:
            connection.search(dn, "(objectClass=*)", search_scope="BASE", attributes=names)
            entries = [item for item in connection.response or () if item.get("type") == "searchResEntry"]
        if len(entries) != 1:
            raise LDAPException("the entry is gone")
        found = {str(name).lower(): values for name, values in entries[0]["raw_attributes"].items()}
        return {name: [*map(_decode_value, found[name.lower()])] for name in names if found.get(name.lower())}

    def _can_bind(self, server: "_LdapServer", dn: str, password: str) -> bool:
        with self._bind(server, dn, password) as connection:
            return connection is not None

    @contextmanager
    def _bind_as_service(self, server: "_LdapServer") -> "Iterator[Connection]":
        """Raises LDAPException, also if the server refuses the service's password."""
        from ldap3.core.exceptions import LDAPException

        with self._bind(server, self._settings.bind_dn, self._settings.password()) as connection:
            if connection is None:
                raise LDAPException("the server refuses the service's DN or password")
            yield connection

    @contextmanager
    def _bind(
        self,
        ldap_server: "_LdapServer",
        dn: str,
        password: str,
        begin: "Callable[[str], object]" = lambda stage: None,
    ) -> "Iterator[Connection | None]":
        """A connection bound as this entry; None if the password is wrong. Raises LDAPException. ``begin`` is called
        with what fails if the next stage does."""
        from ldap3 import Connection, Server, Tls
        from ldap3.core.exceptions import LDAPException

        parts = urlsplit(ldap_server.address)
        ca_file = None if self._settings.ca_file is None else str(self._settings.ca_file)
        tls = Tls(validate=ssl.CERT_REQUIRED)
        tls.wrap_socket = partial(_start_tls, ssl.create_default_context(cafile=ca_file), ldap_server.seconds, begin)
        server = Server(
            parts.hostname,
            port=parts.port or _PORTS[parts.scheme],
            use_ssl=parts.scheme == "ldaps",
            tls=tls,
            connect_timeout=ldap_server.seconds,
            get_info="NO_INFO",
        )
        connection = Connection(
            server,
            user=dn,
            password=password,
            auto_referrals=False,
            receive_timeout=ldap_server.seconds,
            read_only=True,
            check_names=False,
            return_empty_attributes=False,
        )
        try:
            begin(_CONNECTING)
            connection.open(read_server_info=False)
            if parts.scheme == "ldap":
                begin(_STARTING_TLS)
                if not connection.start_tls(read_server_info=False):
                    raise LDAPException("no TLS")
            begin(_BINDING)
            bound = connection.bind(read_server_info=False)
            code = connection.result.get("description")
            if not bound and code not in _BIND_REFUSED_CODES:
                raise LDAPException(str(code))
            yield connection if bound else None
        finally:
            opened = connection.socket
            with suppress(LDAPException, OSError):
                connection.unbind()
            if opened is not None:
                opened.close()

    def _entry(self, found: Mapping[str, Any], login: str) -> LdapEntry | None:
        values = {str(name).lower(): value for name, value in found["raw_attributes"].items()}
        named = values.get(self._settings.id_attribute.lower())
        if not named:
            log.warning("an entry of the directory has no %s", self._settings.id_attribute)
            return None
        return LdapEntry(
            id=named[0].hex(),
            dn=found["dn"],
            login=login,
            attributes={name: _decode_value(value[0]) for name, value in values.items() if value},
            groups=tuple(map(_decode_value, values.get(self._settings.groups_attribute.lower(), ()))),
        )


#: Errors of the library for a server that does not speak LDAP.
_PROTOCOL_ERRORS = (ValueError, LookupError, TypeError, AttributeError)
_EMPTY_RESULT_CODES = frozenset({"success", "noSuchObject", "sizeLimitExceeded"})
#: Result codes that refuse the password, unlike those of a directory failure.
_BIND_REFUSED_CODES = frozenset(
    {
        "invalidCredentials",
        "noSuchObject",
        "inappropriateAuthentication",
        "invalidDNSyntax",
        "unwillingToPerform",
        "constraintViolation",
    }
)


#: What failed, if the stage was not completed.
_TRUSTING = _("The service cannot read the file of certificate authorities.")
_CONNECTING = _("The server does not respond.")
_STARTING_TLS = _("The server does not offer StartTLS.")
_SECURING = _("The TLS handshake fails.")
_VERIFYING = _("The certificate of the server is not trusted, has expired, or is for another name.")
_BINDING = _("The server sends an unexpected response to the login.")
_SEARCHING = _("The server refuses the search.")


def _start_tls(
    context: ssl.SSLContext,
    seconds: int,
    begin: "Callable[[str], object]",
    connection: "Connection",
    do_handshake: bool = False,
) -> None:
    """Secure the connection in place of the library's function: OpenSSL verifies certificate and name."""
    begin(_SECURING)
    connection.socket.settimeout(seconds)
    try:
        connection.socket = context.wrap_socket(connection.socket, server_hostname=connection.server.host)
    except ssl.SSLCertVerificationError:
        begin(_VERIFYING)
        raise


def _decode_value(value: bytes) -> str:
    return value.decode("utf-8", "replace")
