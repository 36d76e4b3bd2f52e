"""Personal access tokens: what a program of a service user may use as it is."""

from datetime import datetime

from identity.domain.entity import create_only, entity, read_only, versioned
from identity.domain.expirations import NEVER
from identity.domain.messages import gettext_lazy
from identity.domain.names import display_name_error


@entity
class PersonalAccessToken:
    """A service user's token that its program shows as it is, without asking the token endpoint first.

    Its live form is an AccessToken that names it, and goes with it.
    """

    id: str = read_only()
    user_id: str = read_only()
    name: str = create_only(
        validator=display_name_error,
        label=gettext_lazy("Name"),
        hint=gettext_lazy("What the token is for. For example {example}", example="Nightly backup"),
        missing=gettext_lazy("Enter a name that tells what the token is for."),
    )
    scope: tuple[str, ...] = read_only()
    created_at: datetime = versioned()
    expires_at: datetime = read_only()
    last_used_at: datetime | None = read_only(default=None)

    def is_live(self, now: datetime) -> bool:
        """True until the expiration date; from that second on the token is refused."""
        return now < self.expires_at

    @property
    def never_expires(self) -> bool:
        """True if it never expires."""
        return self.expires_at == NEVER
