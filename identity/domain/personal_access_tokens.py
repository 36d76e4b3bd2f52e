"""Personal access tokens: long-lived access tokens of service users."""

from datetime import datetime

from identity.domain.entity import create_only, entity, read_only, versioned
from identity.domain.expirations import Expiring
from identity.domain.names import display_name_error


@entity
class PersonalAccessToken(Expiring):
    """A token of a service user that its program presents directly, without the token endpoint. An AccessToken that
    names it makes it usable, and is deleted with it."""

    id: str = read_only()
    user_id: str = read_only()
    name: str = create_only(validator=display_name_error)
    scope: tuple[str, ...] = read_only()
    created_at: datetime = versioned()
    expires_at: datetime = read_only()
    last_used_at: datetime | None = read_only(default=None)
