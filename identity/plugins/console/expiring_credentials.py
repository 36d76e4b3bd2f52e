"""Keys and tokens of service users that expire: form fields and table columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from markupsafe import Markup

from identity.domain.errors import Invalid
from identity.domain.expirations import NEVER
from identity.domain.messages import gettext_lazy as _
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.service_user_keys import ServiceUserKey
from identity.domain.users import ServiceUser
from identity.pages.forms import Form
from identity.plugins.console.badges import expiry_badge
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.form_fields import Checkbox, FormField
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.resource_types import ResourcePage

EXPIRATION_FIELD, NO_EXPIRATION_FIELD = "expiration_date", "no_expiration"

#: Columns after the name.
EXPIRY_COLUMNS = (_("Expiration date"), _("State"), _("Last used"))

ALREADY_CREATED_MESSAGE = _("This was already added; its secret was shown then. Add a new one if you did not save it.")

_YEAR = timedelta(days=365)


def expiration_cells(page: ConsolePage, credential: ServiceUserKey | PersonalAccessToken) -> Sequence[Markup]:
    badge = expiry_badge(credential.expires_at, page.services.now, page.translator)
    return page.template_macros.until(credential), page.render_badge(badge), page.relative_time(credential.last_used_at)


@dataclass(frozen=True, kw_only=True)
class DateField(FormField):
    """A date from tomorrow to the longest lifetime that the service allows."""

    macro = "date_field"

    #: Forms take a date, commands a moment.
    member_name: str = "expires_at"
    #: The longest suggested lifetime; the service enforces its own limit.
    max_lifetime: timedelta | None = None

    def macro_arguments(self, page: ConsolePage) -> dict[str, object]:
        today: date = page.services.now.date()
        days = [] if self.max_lifetime is None else [today + self.max_lifetime]
        if page.services.service_users.max_expiration is not None:
            days.append(last_expiration_date(page.services.service_users.max_expiration))
        suggestions = (
            (timedelta(days=30), _("in 30 days")),
            (timedelta(days=90), _("in 90 days")),
            (_YEAR, _("in 1 year")),
        )
        return {
            "hint": page.translate(self.hint),
            "autofocus": self.autofocus,
            "min": str(today + timedelta(days=1)),
            "max": str(min(days)) if days else None,
            "suggestions": [(str(today + span), page.translate(message)) for span, message in suggestions],
        }


def no_expiration_checkbox(hint: str) -> FormField:
    return Checkbox(name=NO_EXPIRATION_FIELD, label=_("No expiration date"), hint=hint)


class CreateExpiringCredentialPage(ResourcePage[ServiceUser], ConsoleFormPage):
    """Creates a credential with an expiration date. Without expiration only if the service sets no maximum lifetime."""

    is_creation = True

    def visible_fields(self) -> Sequence[FormField]:
        limited = self.services.service_users.max_expiration is not None
        return [
            form_field for form_field in self.form_fields if not (limited and form_field.name == NO_EXPIRATION_FIELD)
        ]

    def initial_values(self) -> Mapping[str, str]:
        users = self.services.service_users
        day, latest = users.default_expiration.date(), users.max_expiration
        return {EXPIRATION_FIELD: str(day if latest is None else min(day, last_expiration_date(latest)))}


def parse_expiration(form: Form) -> datetime:
    """The end of the chosen day (UTC); NEVER without expiration. Raises Invalid."""
    text = form.text(EXPIRATION_FIELD)
    if form.text(NO_EXPIRATION_FIELD):
        return NEVER
    if not text:
        raise Invalid({EXPIRATION_FIELD: _("Choose an expiration date, or tick “No expiration date”.")})
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise Invalid({EXPIRATION_FIELD: _("Enter a date such as 2027-12-31.")}) from None
    return datetime.combine(day, time(23, 59, 59), UTC)


def last_expiration_date(latest: datetime) -> date:
    """The last date whose end is not after ``latest`` (UTC)."""
    return (latest + timedelta(seconds=1)).date() - timedelta(days=1)


def last_used_label(moment: datetime | None) -> str:
    if moment is None:
        return _("It was never used.")
    return _("Last used {when} UTC.", when=moment.strftime("%Y-%m-%d %H:%M"))
