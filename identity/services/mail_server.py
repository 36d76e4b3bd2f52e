"""The mail server: settings of the instance, below those of the ini file."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from identity.crypto.secrets import constant_time_equal
from identity.domain.errors import Conflict, Invalid
from identity.domain.mail_server import EffectiveMailServer, MailServer, SmtpSecurity
from identity.domain.messages import gettext_lazy
from identity.domain.permissions import INSTANCE_WRITE, Resource
from identity.domain.records import Record
from identity.services.access_control import AccessControl, Principal
from identity.services.audit import diff_fields
from identity.services.base import CHANGED_MEANWHILE, Service, refuse_stale
from identity.services.commands.mail_server import ChangeMailServer
from identity.services.records import RecordService
from identity.settings import SmtpSettings
from identity.storage.errors import UnreadableRow

_KIND = _KEY = "mail_server"
#: A change takes effect in other processes after this time.
_FRESH = timedelta(seconds=10)
#: A password of the ini file goes only where the ini file says, and only as it says.
_CONNECTION = frozenset({"host", "port", "security"})
_FIELDS = frozenset({"host", "port", "security", "user", "sender"})


@dataclass
class MailServerCache:
    """Whether a mail server is set, per process. ``has_mailbox`` if mails are stored for a page, in development."""

    has_mailbox: bool = False
    entry: tuple[datetime, bool] | None = None

    def find(self, now: datetime) -> bool | None:
        return None if self.entry is None or abs(now - self.entry[0]) >= _FRESH else self.entry[1]


@dataclass(eq=False, repr=False)
class MailServerService(Service):
    """Values of the ini file win over those stored here. Reading the settings needs no permission; views check it."""

    _access: AccessControl
    _records: RecordService
    _cache: MailServerCache
    _changed: bool = field(default=False, init=False)

    @property
    def is_enabled(self) -> bool:
        """True if mails can be sent; at most a few seconds old."""
        if self._cache.has_mailbox or self._settings.smtp.host:
            return True
        known = None if self._changed else self._cache.find(self._now)
        if known is None:
            known = bool(self.effective().server.host)
            if not self._changed:
                self._cache.entry = self._now, known
        return known

    def get(self) -> MailServer:
        """What is stored here."""
        record = self._find_record()
        return MailServer() if record is None else _from_json(record.value, record.version)

    def _find_record(self) -> Record | None:
        """None also for one whose master key is gone: then no mail is sent until it is set again."""
        try:
            return self._records.find(_KIND, _KEY)
        except UnreadableRow:
            return None

    def effective(self) -> EffectiveMailServer:
        """What is in use."""
        return merge_mail_server(self._settings.smtp, self.get())

    def change(
        self, command: ChangeMailServer, *, principal: Principal, expected_version: int | None = None
    ) -> MailServer:
        """Raises Denied, Conflict; Invalid for values that the ini file sets, or that contradict each other."""
        self._access.require(principal, INSTANCE_WRITE, Resource.INSTANCE)
        record, before = self._find_record(), self.get()
        refuse_stale(before.version, expected_version)
        sent = {name: value for name, value in command if value is not None}
        self._refuse_configured(before, sent)
        password = sent.pop("password", None)
        after = replace(before, **sent)
        if password is not None and not constant_time_equal(password.encode(), before.password.encode()):
            after = replace(after, password=password, password_changed_at=self._now if password else None)
        elif after.connection != before.connection and before.password:
            after = replace(after, password="", password_changed_at=None)
        _refuse_inconsistent(after, merge_mail_server(self._settings.smtp, after))
        if after == before:
            return before
        after = replace(after, changed_at=self._now)
        if record is not None:
            self._records.replace(record, _to_json(after))
        else:
            # One that cannot be read any more.
            self._records.delete(_KIND, _KEY)
            if self._records.add(_KIND, _KEY, _to_json(after), seal=True) is not None:
                raise Conflict(CHANGED_MEANWHILE)
        self._changed, self._cache.entry = True, None
        detail = diff_fields(before, after)
        self._audit.record("mail_server.changed", kind="instance", id="instance", organization_id=None, detail=detail)
        return self.get()

    def record_test(self, *, principal: Principal) -> None:
        """Record that a mail is sent to test the server. Raises Denied; Conflict without a server."""
        self._access.require(principal, INSTANCE_WRITE, Resource.INSTANCE)
        if not self.is_enabled:
            raise Conflict(gettext_lazy("Set a mail server first."))
        self._audit.record("mail_server.tested", kind="instance", id="instance", organization_id=None)

    def _refuse_configured(self, before: MailServer, sent: Mapping[str, object]) -> None:
        configured = merge_mail_server(self._settings.smtp, before).configured
        refused = [name for name in sent if name in configured and sent[name] != getattr(before, name)]
        if refused:
            sentence = gettext_lazy("The ini file sets this.")
            raise Invalid(dict.fromkeys(refused, sentence))


def merge_mail_server(settings: SmtpSettings, stored: MailServer) -> EffectiveMailServer:
    """The stored values, with those that the ini file sets."""
    configured = settings.configured & _FIELDS
    if settings.password_file is not None:
        configured |= _CONNECTION | {"password"}
    values = {name: getattr(settings, name) for name in configured & _FIELDS}
    server = replace(stored, **values)
    if settings.password_file is not None:
        server = replace(server, password="")
    return EffectiveMailServer(
        server=server,
        configured=configured,
        password_file=settings.password_file,
        is_restricted="host" not in configured,
    )


def _refuse_inconsistent(stored: MailServer, effective: EffectiveMailServer) -> None:
    problems: dict[str, str] = {}
    server = effective.server
    if server.host and not server.sender:
        problems["sender"] = gettext_lazy("Enter the address that mails come from.")
    if server.user and server.security is SmtpSecurity.NONE and not server.is_on_this_machine:
        problems["security"] = gettext_lazy("A password needs an encrypted connection.")
    if server.host and server.user and not server.password and effective.password_file is None:
        problems["password"] = gettext_lazy("Enter the password of the user.")
    if stored.password and not server.user:
        problems["user"] = gettext_lazy("Enter the user to whom the password belongs.")
    if problems:
        raise Invalid(problems)


def _to_json(server: MailServer) -> dict[str, Any]:
    values = {item.name: getattr(server, item.name) for item in fields(server) if item.name != "version"}
    moments = ("password_changed_at", "changed_at")
    return values | {name: None if values[name] is None else int(values[name].timestamp()) for name in moments}


def _from_json(values: Mapping[str, Any], version: int) -> MailServer:
    moments = {
        name: None if values[name] is None else datetime.fromtimestamp(values[name], UTC)
        for name in ("password_changed_at", "changed_at")
    }
    return MailServer(**{**values, **moments, "security": SmtpSecurity(values["security"])}, version=version)
