"""Search: finds who has a login name in the directory, and tries the password there (RFC 4511 §4.2, RFC 4513 §5.1)."""

import logging
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from identity.fair_shares import FairShares, Full
from identity.ini_values import BadSetting
from identity.plugins.ldap.settings import LOGIN, Settings
from identity.provider.directory import Absent

if TYPE_CHECKING:
    from ldap3 import Connection

log = logging.getLogger(__name__)

#: How long a server may take for each answer, and how many ask at the same time, of one network a quarter of them.
SECONDS = 5
_AT_ONCE = 16
_LONGEST = 500
_PORTS = {"ldap": 389, "ldaps": 636}


@dataclass(frozen=True)
class Entry:
    """Somebody in the directory. ``id`` stays when all else changes; ``attributes`` have small names."""

    id: str
    login: str
    attributes: Mapping[str, str]
    groups: tuple[str, ...]


class Search:
    """One per process. Each question has a connection of its own, so that nobody's bind is another's."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        # All of them serve one organization.
        self._places = FairShares(_AT_ONCE, by_organization=False)

    def find(self, login: str, password: str) -> Entry | None:
        """Who has this name and this password. Raises Absent if no server answers, or too many ask.

        An empty password never reaches a server: that would be a bind without one, which succeeds (RFC 4513 §5.1.2).
        """
        if not login or not password or "\0" in password or max(len(login), len(password)) > _LONGEST:
            return None
        try:
            leave = self._places.take()
        except Full:
            raise Absent("too many ask the directory") from None
        try:
            return self._asked(login, password)
        finally:
            leave()

    def _asked(self, login: str, password: str) -> Entry | None:
        from ldap3.core.exceptions import LDAPException
        from pyasn1.error import PyAsn1Error

        for address in self._settings.servers:
            try:
                return self._ask(address, login, password)
            except (LDAPException, PyAsn1Error, OSError, BadSetting, *_NO_LDAP) as problem:
                log.warning("the directory %s does not answer as it should: %s", address, type(problem).__name__)
        raise Absent("no server of the directory answers")

    def _ask(self, address: str, login: str, password: str) -> Entry | None:
        from ldap3.core.exceptions import LDAPException
        from ldap3.utils.conv import escape_filter_chars

        settings = self._settings
        with self._bound(address, settings.bind_dn, settings.password()) as connection:
            if connection is None:
                raise LDAPException("the service is not let in")
            found = connection.search(
                settings.base,
                settings.filter.replace(LOGIN, escape_filter_chars(login)),
                attributes=[*self._wanted, settings.id_attribute, settings.groups_attribute],
                size_limit=2,
            )
            entries = [one for one in connection.response or () if one.get("type") == "searchResEntry"]
            if not found and connection.result.get("description") not in (
                "success",
                "noSuchObject",
                "sizeLimitExceeded",
            ):
                raise LDAPException("the search failed")
        # Of two nobody can say who is meant. For nobody the password is tried as well: it takes as long.
        dn = entries[0]["dn"] if len(entries) == 1 else f"cn=nobody,{settings.base}"
        with self._bound(address, dn, password) as connection:
            return self._entry(entries[0], login) if connection is not None and len(entries) == 1 else None

    @contextmanager
    def _bound(self, address: str, dn: str, password: str) -> "Iterator[Connection | None]":
        """A connection that is bound as this entry; None if the password is not its own. Raises LDAPException."""
        from ldap3 import Connection, Server, Tls
        from ldap3.core.exceptions import LDAPException

        parts = urlsplit(address)
        ca_file = None if self._settings.ca_file is None else str(self._settings.ca_file)
        tls = Tls(validate=ssl.CERT_REQUIRED)
        tls.wrap_socket = partial(_secure, ssl.create_default_context(cafile=ca_file))
        server = Server(
            parts.hostname,
            port=parts.port or _PORTS[parts.scheme],
            use_ssl=parts.scheme == "ldaps",
            tls=tls,
            connect_timeout=SECONDS,
            get_info="NO_INFO",
        )
        connection = Connection(
            server,
            user=dn,
            password=password,
            auto_referrals=False,
            receive_timeout=SECONDS,
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


def _secure(context: ssl.SSLContext, connection: "Connection", do_handshake: bool = False) -> None:
    """Have the connection secured, in place of the library's own way: certificate and name are checked by OpenSSL."""
    connection.socket.settimeout(SECONDS)
    connection.socket = context.wrap_socket(connection.socket, server_hostname=connection.server.host)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
