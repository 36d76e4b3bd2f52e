"""Badge: the state of a thing in a word, with a kind that gives it a shape and a colour. Named: a thing by its name."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from markupsafe import Markup

from identity.domain.service_user_keys import KeySummary
from identity.pages.translation import Words

#: From here on a thing that expires is spoken of.
SOON = timedelta(days=30)


@dataclass(frozen=True)
class Badge:
    """``kind`` is success, warning, danger, or nothing for what is plain."""

    text: Markup
    kind: str = ""


@dataclass(frozen=True)
class Named:
    """What people know a thing by, what stands below that, and the address of its page, for whoever may read it."""

    name: str
    href: str = ""
    sub: str = ""


def state_badge(active: bool, words: Words) -> Badge:
    """Active or deactivated."""
    return Badge(words.t("Active"), "success") if active else Badge(words.t("Deactivated"))


def expiry_badge(expires_at: datetime, now: datetime, words: Words) -> Badge:
    """How a thing that works until a moment stands."""
    left = expires_at - now
    if left <= timedelta():
        return Badge(words.t("Expired"), "danger")
    if left <= SOON:
        days = max(left // timedelta(days=1), 1)
        return Badge(words.tn("Expires in {n} day", "Expires in {n} days", days), "warning")
    return Badge(words.t("Active"), "success")


def keys_badge(summary: KeySummary | None, now: datetime, words: Words) -> Badge | None:
    """All keys of a service user in one badge: the soonest expiry if that is near, else how many are live."""
    if summary is None or summary.next_expiry is None:
        return None
    badge = expiry_badge(summary.next_expiry, now, words)
    return Badge(words.tn("{n} live", "{n} live", summary.live)) if badge.kind == "success" else badge


def secrets_badge(live: int, words: Words) -> Badge:
    """How many client secrets there are; none is what somebody should know of."""
    if not live:
        return Badge(words.t("No secret"), "warning")
    return Badge(words.tn("{n} live", "{n} live", live))
