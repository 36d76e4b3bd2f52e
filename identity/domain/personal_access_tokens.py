"""Personal access tokens: what a program of a service user may use as it is."""

from datetime import datetime

from identity.domain.entity import entity, made, once, stamp
from identity.domain.expirations import NEVER
from identity.domain.names import name_problem
from identity.domain.words import say


@entity
class PersonalAccessToken:
    """A service user's token that its program shows as it is, without asking the token endpoint first.

    Its live form is an AccessToken that names it, and goes with it.
    """

    id: str = made()
    user_id: str = made()
    name: str = once(
        rule=name_problem,
        label=say("Name"),
        hint=say("What the token is for. For example {example}", example="Nightly backup"),
        missing=say("Enter a name that tells what the token is for."),
    )
    scope: tuple[str, ...] = made()
    created_at: datetime = stamp()
    expires_at: datetime = made()
    last_used_at: datetime | None = made(default=None)

    def live(self, now: datetime) -> bool:
        """True until the expiration date; from that second on the token is refused."""
        return now < self.expires_at

    @property
    def for_ever(self) -> bool:
        """True if it never expires."""
        return self.expires_at == NEVER
