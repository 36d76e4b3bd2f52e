"""Dates and times in the reader's format and time zone, and relative times in words."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from markupsafe import Markup

from identity.cached_property import cached_property
from identity.domain.users import HumanUser, Subject
from identity.pages.translation import Translator

_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
_MONTH, _YEAR = timedelta(days=30), timedelta(days=365)


def format_relative_time(moment: datetime, now: datetime, translator: Translator) -> Markup:
    """The largest whole unit between now and the moment: "in 7 days", "3 hours ago"."""
    return _format_future(moment - now, translator) if moment > now else _format_past(now - moment, translator)


def _format_future(span: timedelta, translator: Translator) -> Markup:
    if span < _MINUTE:
        return translator.gettext("in less than a minute")
    if span < _HOUR:
        return translator.ngettext("in {n} minute", "in {n} minutes", span // _MINUTE)
    if span < _DAY:
        return translator.ngettext("in {n} hour", "in {n} hours", span // _HOUR)
    if span < _MONTH:
        return translator.ngettext("in {n} day", "in {n} days", span // _DAY)
    if span < _YEAR:
        return translator.ngettext("in {n} month", "in {n} months", span // _MONTH)
    return translator.ngettext("in {n} year", "in {n} years", span // _YEAR)


def _format_past(span: timedelta, translator: Translator) -> Markup:
    if span < _MINUTE:
        return translator.gettext("just now")
    if span < _HOUR:
        return translator.ngettext("{n} minute ago", "{n} minutes ago", span // _MINUTE)
    if span < _DAY:
        return translator.ngettext("{n} hour ago", "{n} hours ago", span // _HOUR)
    if span < _MONTH:
        return translator.ngettext("{n} day ago", "{n} days ago", span // _DAY)
    if span < _YEAR:
        return translator.ngettext("{n} month ago", "{n} months ago", span // _MONTH)
    return translator.ngettext("{n} year ago", "{n} years ago", span // _YEAR)


def user_time_zone(subject: Subject | None) -> tzinfo | None:
    """The user's time zone; None if there is no user, or no known zone is set."""
    if subject is None or not isinstance(subject.user, HumanUser) or not subject.user.profile.zoneinfo:
        return None
    try:
        return ZoneInfo(subject.user.profile.zoneinfo)
    except (OSError, ValueError, LookupError):
        return None


class DatetimeFormatter:
    def __init__(self, language: str, find_zone: Callable[[], tzinfo | None]) -> None:
        self._language = language
        self._find_zone = find_zone

    @cached_property
    def time_zone(self) -> tzinfo | None:
        """The reader's zone, looked up at first use; None if unknown."""
        return self._find_zone()

    def format_date(self, moment: datetime) -> str:
        """In the reader's zone or UTC."""
        return self._format_local_date(moment.astimezone(self.time_zone or UTC))

    def format_datetime(self, moment: datetime) -> str:
        """Date, time to the minute, and zone."""
        return self._format_local_datetime(moment.astimezone(self.time_zone or UTC), "short")

    def format_utc_seconds(self, moment: datetime) -> str:
        """The time to the second in UTC, as in the audit trail."""
        return self._format_local_datetime(moment.astimezone(UTC), "medium")

    def _format_local_date(self, local: datetime) -> str:
        # Imported by the first page that shows a date.
        from babel.dates import format_date

        return format_date(local, "medium", locale=self._language)

    def _format_local_datetime(self, local: datetime, length: str) -> str:
        from babel.dates import format_time

        zone = local.tzname() or ""
        # Zones without a name are shown by their offset.
        named = zone if zone[:1].isalpha() else f"UTC{zone}"
        time = format_time(local, length, tzinfo=local.tzinfo, locale=self._language)
        return f"{self._format_local_date(local)} {time} {named}"
