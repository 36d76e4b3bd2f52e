"""Search: finds who has a login name in the directory, and tries the password there (RFC 4511 §4.2, RFC 4513 §5.1)."""

import logging
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from identity.crypto.secrets import new_token
from identity.fair_shares import FairShares, Full
from identity.ini_values import BadSetting
from identity.plugins.ldap.settings import LOGIN, Settings
from identity.provider.directory import Absent

if TYPE_CHECKING:
    from ldap3 import Connection

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

#: How long a server may take for each answer, and how many ask at the same time, of one network a quarter.
SECONDS = 5
_AT_ONCE = 16
#: The same for whoever does not need the answer, and how long a directory that was away is not asked by them.
_SHORT_SECONDS = 1
_TRUSTED_AFTER = 60.0
_LONGEST = 500
_PORTS = {"ldap": 389, "ldaps": 636}


class _Server(NamedTuple):
    """One of the servers, and how many seconds it may take for an answer."""

    address: str
    seconds: int


@dataclass(frozen=True)
class Entry:
    """Somebody in the directory. ``id`` stays when all else changes; ``attributes`` have small names.

    ``login`` is the name that they were found by.
    """

    id: str
    dn: str
    login: str
    attributes: Mapping[str, str]
    groups: tuple[str, ...]


class Search:
    """One per process. Each question has a connection of its own, so that nobody's bind is another's."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        # All of them serve one organization.
        self._places = FairShares(_AT_ONCE, by_organization=False)
        self._failed_at = -_TRUSTED_AFTER

    def find(self, login: str) -> Entry | None:
        """Who has this name; nobody, if several have. Raises Absent if no server answers, or too many ask."""
        from ldap3.utils.conv import escape_filter_chars

        if not login or len(login) > _LONGEST:
            return None
        return self._ask(lambda server: self._searched(server, escape_filter_chars(login), login))

    def find_by_id(self, entry_id: str) -> Entry | None:
        """The entry of this id, if the filter lets it in under any name. Raises Absent."""
        escaped = "".join(f"\\{byte:02x}" for byte in bytes.fromhex(entry_id))
        condition = f"({self._settings.id_attribute}={escaped})"
        return self._ask(lambda server: self._searched(server, "*", "", condition))

    def verify(self, entry: Entry | None, password: str) -> bool:
        """Whether this is the entry's password; for None, a bind that fails by a password that nobody typed.

        Raises Absent. An empty password never reaches a server: that would be a bind without one, which succeeds (RFC
        4513 §5.1.2).
        """
        is_real = entry is not None and 0 < len(password) <= _LONGEST and "\0" not in password
        dn, tried = (entry.dn, password) if entry is not None and is_real else (self._nobody, new_token())
        return self._ask(lambda server: self._is_let_in(server, dn, tried)) and is_real

    def take_as_long(self, login: str) -> None:
        """Take as long as ``find`` and ``verify`` do, but give up soon, and at once while no server answers: whose
        account has nothing to do with the directory does not wait for it."""
        if monotonic() - self._failed_at < _TRUSTED_AFTER:
            return
        with suppress(Absent):
            self._ask(lambda server: self._pretended(server, login), seconds=_SHORT_SECONDS)

    def _ask(self, question: "Callable[[_Server], Answer]", *, seconds: int | None = None) -> "Answer":
        from ldap3.core.exceptions import LDAPException
        from pyasn1.error import PyAsn1Error

        try:
            leave = self._places.take()
        except Full:
            raise Absent("too many ask the directory") from None
        try:
            for address in self._settings.servers:
                try:
                    return question(_Server(address, SECONDS if seconds is None else seconds))
                except (LDAPException, PyAsn1Error, OSError, BadSetting, *_NO_LDAP) as problem:
                    log.warning("the directory %s does not answer as it should: %s", address, type(problem).__name__)
        finally:
            leave()
        self._failed_at = monotonic()
        raise Absent("no server of the directory answers")

    def _pretended(self, server: "_Server", login: str) -> None:
        from ldap3.utils.conv import escape_filter_chars

        self._searched(server, escape_filter_chars(login[:_LONGEST]), login)
        self._is_let_in(server, self._nobody, new_token())

    @property
    def _nobody(self) -> str:
        return f"cn=nobody,{self._settings.base}"

    def _searched(self, server: "_Server", pattern: str, login: str, condition: str = "") -> Entry | None:
        """The one entry that fits the filter with the pattern in it, and the condition."""
        from ldap3.core.exceptions import LDAPException

        settings = self._settings
        wanted = settings.filter.replace(LOGIN, pattern)
        with self._bound(server, settings.bind_dn, settings.password()) as connection:
            if connection is None:
                raise LDAPException("the service is not let in")
            found = connection.search(
                settings.base,
                f"(&{condition}{wanted})" if condition else wanted,
                attributes=[*self._wanted, settings.id_attribute, settings.groups_attribute],
                size_limit=2,
            )
            entries = [one for one in connection.response or () if one.get("type") == "searchResEntry"]
            if not found and connection.result.get("description") not in _FINDS_NOBODY:
                raise LDAPException("the search failed")
        # Of two nobody can say who is meant.
        return self._entry(entries[0], login) if len(entries) == 1 else None

    def _is_let_in(self, server: "_Server", dn: str, password: str) -> bool:
        with self._bound(server, dn, password) as connection:
            return connection is not None

    @contextmanager
    def _bound(self, asked: "_Server", dn: str, password: str) -> "Iterator[Connection | None]":
        """A connection that is bound as this entry; None if the password is not its own. Raises LDAPException."""
        from ldap3 import Connection, Server, Tls
        from ldap3.core.exceptions import LDAPException

        parts = urlsplit(asked.address)
        ca_file = None if self._settings.ca_file is None else str(self._settings.ca_file)
        tls = Tls(validate=ssl.CERT_REQUIRED)
        tls.wrap_socket = partial(_secure, ssl.create_default_context(cafile=ca_file), asked.seconds)
        server = Server(
            parts.hostname,
            port=parts.port or _PORTS[parts.scheme],
            use_ssl=parts.scheme == "ldaps",
            tls=tls,
            connect_timeout=asked.seconds,
            get_info="NO_INFO",
        )
        connection = Connection(
            server,
            user=dn,
            password=password,
            auto_referrals=False,
            receive_timeout=asked.seconds,
            read_only=True,
            check_names=False,
            return_empty_attributes=False,
        )
        try:
            connection.open(read_server_info=False)
            if parts.scheme == "ldap" and not connection.start_tls(read_server_info=False):
                raise LDAPException("no TLS")
            bound = connection.bind(read_server_info=False)
            code = connection.result.get("description")
            if not bound and code not in _NOT_THEIRS:
                raise LDAPException(str(code))
            yield connection if bound else None
        finally:
            opened = connection.socket
            with suppress(LDAPException, OSError):
                connection.unbind()
            if opened is not None:
                opened.close()

    @property
    def _wanted(self) -> Sequence[str]:
        return [line.partition("=")[2] for line in self._settings.attributes]

    def _entry(self, found: Mapping[str, Any], login: str) -> Entry | None:
        values = {str(name).lower(): value for name, value in found["raw_attributes"].items()}
        named = values.get(self._settings.id_attribute.lower())
        if not named:
            log.warning("an entry of the directory has no %s", self._settings.id_attribute)
            return None
        return Entry(
            id=named[0].hex(),
            dn=found["dn"],
            login=login,
            attributes={name: _text(value[0]) for name, value in values.items() if value},
            groups=tuple(map(_text, values.get(self._settings.groups_attribute.lower(), ()))),
        )


#: What the library stumbles over if what a server says is no LDAP.
_NO_LDAP = (ValueError, LookupError, TypeError, AttributeError)
_FINDS_NOBODY = frozenset({"success", "noSuchObject", "sizeLimitExceeded"})
#: What says that somebody may not come in with this password, rather than that the directory does not work.
_NOT_THEIRS = frozenset(
    {
        "invalidCredentials",
        "noSuchObject",
        "inappropriateAuthentication",
        "invalidDNSyntax",
        "unwillingToPerform",
        "constraintViolation",
    }
)


def _secure(context: ssl.SSLContext, seconds: int, connection: "Connection", do_handshake: bool = False) -> None:
    """Have the connection secured, in place of the library's own way: certificate and name are checked by OpenSSL."""
    connection.socket.settimeout(seconds)
    connection.socket = context.wrap_socket(connection.socket, server_hostname=connection.server.host)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
