"""Commands that change service users and their keys."""

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
    """Change the fields that are set."""


class AddServiceUserKey(Command):
    """Add a generated key; ``expires_at`` is one year from now by default, ``never`` must be explicit."""

    expires_at: Expiration | None = None
    key_size: Literal[2048, 3072, 4096] = 2048


class UploadServiceUserKey(Command):
    """Add a key whose private half the service never sees; ``public_key`` is PEM or a JWK."""

    public_key: str
    expires_at: Expiration | None = None


class AddPersonalAccessToken(Command):
    """Add a personal access token; ``expires_at`` is that of a key.

    ``scope`` is what it may request of the service, by default ``openid``. Its audience is the instance's own
    project and ``project_ids``; for each the audience scope is added to the scope (service description §2.7)."""

    name: Name
    expires_at: Expiration | None = None
    scope: ScopeString = ""
    project_ids: tuple[str, ...] = ()
