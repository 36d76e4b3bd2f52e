"""How long keys and tokens of service users are good for: the fields that ask for it, and how they show it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from markupsafe import Markup

from identity.domain.errors import Invalid
from identity.domain.expirations import NEVER
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.service_user_keys import ServiceUserKey
from identity.domain.words import say
from identity.pages.forms import Form
from identity.plugins.console.badges import expiry_badge
from identity.plugins.console.console_form import ConsoleForm
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.fields import Field, Tick
from identity.plugins.console.things import OfServiceUser

#: The date, and the tick for none.
EXPIRATION, FOR_EVER = "expiration_date", "no_expiration"

#: What lists tell of each after its name.
COLUMNS = (say("Expiration date"), say("State"), say("Last used"))

ALREADY = say("This was already added; its secret was shown then. Add a new one if you did not save it.")

_YEAR = timedelta(days=365)


def expiration_cells(page: ConsolePage, of: ServiceUserKey | PersonalAccessToken) -> Sequence[Markup]:
    """When it expires, how it stands, when it was used."""
    badge = expiry_badge(of.expires_at, page.services.now, page.words)
    return page.ui.until(of), page.badge(badge), page.ago(of.last_used_at)


@dataclass(frozen=True, kw_only=True)
class DateField(Field):
    """A day until which something works: from tomorrow on, and no later than the service allows."""

    macro = "date_field"

    #: Commands say when, forms say until which day.
    called: str = "expires_at"
    #: The longest that the form suggests; what the service allows is its own affair.
    longest: timedelta | None = None

    def arguments(self, page: ConsolePage) -> dict[str, object]:
        today: date = page.services.now.date()
        days = [] if self.longest is None else [today + self.longest]
        if page.services.service_users.latest_expiration is not None:
            days.append(last_day(page.services.service_users.latest_expiration))
        suggestions = (
            (timedelta(days=30), say("in 30 days")),
            (timedelta(days=90), say("in 90 days")),
            (_YEAR, say("in 1 year")),
        )
        return {
            "hint": page.said(self.hint),
            "autofocus": self.autofocus,
            "min": str(today + timedelta(days=1)),
            "max": str(min(days)) if days else None,
            "suggestions": [(str(today + span), page.said(words)) for span, words in suggestions],
        }


def for_ever_tick(hint: str) -> Field:
    """The tick for no expiration."""
    return Tick(name=FOR_EVER, label=say("No expiration date"), hint=hint)


class ExpiringForm(OfServiceUser, ConsoleForm):
    """Makes something that works until a day; there is no tick for no expiration where the service sets a limit."""

    creates = True

    def drawn(self) -> Sequence[Field]:
        limited = self.services.service_users.latest_expiration is not None
        return [one for one in self.inputs if not (limited and one.name == FOR_EVER)]

    def values(self) -> Mapping[str, str]:
        """The day that is suggested."""
        users = self.services.service_users
        day, latest = users.usual_expiration.date(), users.latest_expiration
        return {EXPIRATION: str(day if latest is None else min(day, last_day(latest)))}


def expiration(form: Form) -> datetime:
    """The end of the day that was chosen (UTC); NEVER for none. Raises Invalid."""
    text = form.one(EXPIRATION)
    if form.one(FOR_EVER):
        return NEVER
    if not text:
        raise Invalid({EXPIRATION: say("Choose an expiration date, or tick “No expiration date”.")})
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise Invalid({EXPIRATION: say("Enter a date such as 2027-12-31.")}) from None
    return datetime.combine(day, time(23, 59, 59), UTC)


def last_day(latest: datetime) -> date:
    """The last day that ends no later (UTC)."""
    return (latest + timedelta(seconds=1)).date() - timedelta(days=1)


def last_used(moment: datetime | None) -> str:
    """When a key or secret was last used, as a sentence."""
    if moment is None:
        return say("It was never used.")
    return say("Last used {when} UTC.", when=moment.strftime("%Y-%m-%d %H:%M"))
