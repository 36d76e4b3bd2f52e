"""Changes to service users and their keys."""

from typing import Literal

from identity.domain.users import ServiceUser
from identity.services.commands import Command
from identity.services.commands.entity_fields import with_create_fields, with_update_fields
from identity.services.commands.field_types import Expiration, Name, ScopeString, UserName


@with_create_fields(ServiceUser)
class CreateServiceUser(Command):
    """Create a service user (service description §2.1)."""

    user_name: UserName


@with_update_fields(ServiceUser)
class ChangeServiceUser(Command):
    """Change what is given."""


class AddServiceUserKey(Command):
    """Add a generated key; ``expires_at`` is a year from now unless given, ``never`` has to be said."""

    expires_at: Expiration | None = None
    key_size: Literal[2048, 3072, 4096] = 2048


class UploadServiceUserKey(Command):
    """Add a key whose private half the service never sees; ``public_key`` is PEM or a JWK."""

    public_key: str
    expires_at: Expiration | None = None


class AddPersonalAccessToken(Command):
    """Add a token that a program uses as it is; its ``expires_at`` is understood as a key's.

    ``scope`` is what it may ask of the service, ``openid`` unless given. The own project is always in its audience,
    ``project_ids`` names those to add; for each the audience scope is added to the scope (service description §2.7).
    """

    name: Name
    expires_at: Expiration | None = None
    scope: ScopeString = ""
    project_ids: tuple[str, ...] = ()
