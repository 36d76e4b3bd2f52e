"""Badge: the state of an entity in a word, with a kind that gives it a shape. EntityLink: its name and page."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from markupsafe import Markup

from identity.domain.service_user_keys import KeySummary
from identity.pages.translation import Translator

#: From here on a thing that expires is spoken of.
EXPIRY_WARNING_PERIOD = timedelta(days=30)


@dataclass(frozen=True)
class Badge:
    """``kind`` is success, warning, danger, or nothing for what is plain."""

    text: Markup
    kind: str = ""


@dataclass(frozen=True)
class EntityLink:
    """What people know a thing by, what stands below that, and the address of its page, for whoever may read it."""

    name: str
    href: str = ""
    secondary_text: str = ""


def state_badge(active: bool, translator: Translator) -> Badge:
    """Active or deactivated."""
    return Badge(translator.gettext("Active"), "success") if active else Badge(translator.gettext("Deactivated"))


def expiry_badge(expires_at: datetime, now: datetime, translator: Translator) -> Badge:
    """How a thing that works until a moment stands."""
    left = expires_at - now
    if left <= timedelta():
        return Badge(translator.gettext("Expired"), "danger")
    if left <= EXPIRY_WARNING_PERIOD:
        days = max(left // timedelta(days=1), 1)
        return Badge(translator.ngettext("Expires in {n} day", "Expires in {n} days", days), "warning")
    return Badge(translator.gettext("Active"), "success")


def keys_badge(summary: KeySummary | None, now: datetime, translator: Translator) -> Badge | None:
    """All keys of a service user in one badge: the soonest expiry if that is near, else how many are live."""
    if summary is None or summary.next_expires_at is None:
        return None
    badge = expiry_badge(summary.next_expires_at, now, translator)
    return Badge(translator.ngettext("{n} live", "{n} live", summary.live_count)) if badge.kind == "success" else badge


def secrets_badge(live: int, translator: Translator) -> Badge:
    """How many client secrets there are; none is what somebody should know of."""
    if not live:
        return Badge(translator.gettext("No secret"), "warning")
    return Badge(translator.ngettext("{n} live", "{n} live", live))
