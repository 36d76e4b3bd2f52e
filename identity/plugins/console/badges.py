"""Badge shows an entity's state. EntityLink is its name with a link to its page."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from markupsafe import Markup

from identity.domain.service_user_keys import KeySummary
from identity.pages.translation import Translator

#: Expiry is pointed out from here on.
EXPIRY_WARNING_PERIOD = timedelta(days=30)


@dataclass(frozen=True)
class Badge:
    """``kind`` is success, warning, danger or empty."""

    text: Markup
    kind: str = ""


@dataclass(frozen=True)
class EntityLink:
    """``href`` is empty if the caller may not read the entity."""

    name: str
    href: str = ""
    secondary_text: str = ""


def state_badge(active: bool, translator: Translator) -> Badge:
    return Badge(translator.gettext("Active"), "success") if active else Badge(translator.gettext("Deactivated"))


def expiry_badge(expires_at: datetime, now: datetime, translator: Translator) -> Badge:
    left = expires_at - now
    if left <= timedelta():
        return Badge(translator.gettext("Expired"), "danger")
    if left <= EXPIRY_WARNING_PERIOD:
        days = max(left // timedelta(days=1), 1)
        return Badge(translator.ngettext("Expires in {n} day", "Expires in {n} days", days), "warning")
    return Badge(translator.gettext("Active"), "success")


def end_badge(until: datetime | None, now: datetime, translator: Translator) -> Badge | None:
    """When roles end by themselves; None for roles without an end."""
    if until is None:
        return None
    left = until - now
    if left <= timedelta():
        return Badge(translator.gettext("Ended"), "danger")
    if left <= EXPIRY_WARNING_PERIOD:
        days = max(left // timedelta(days=1), 1)
        return Badge(translator.ngettext("Ends in {n} day", "Ends in {n} days", days), "warning")
    return Badge(translator.gettext("Until {day}", day=f"{until:%Y-%m-%d}"))


def keys_badge(summary: KeySummary | None, now: datetime, translator: Translator) -> Badge | None:
    """One badge for all keys of a service user: the earliest expiry if near, else the number of live keys."""
    if summary is None or summary.next_expires_at is None:
        return None
    badge = expiry_badge(summary.next_expires_at, now, translator)
    return Badge(translator.ngettext("{n} live", "{n} live", summary.live_count)) if badge.kind == "success" else badge


def secrets_badge(live: int, translator: Translator) -> Badge:
    """The number of client secrets; a warning if there are none."""
    if not live:
        return Badge(translator.gettext("No secret"), "warning")
    return Badge(translator.ngettext("{n} live", "{n} live", live))
