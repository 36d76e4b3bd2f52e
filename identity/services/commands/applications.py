"""Commands that change applications."""

from identity.domain.applications import Application, ApplicationType
from identity.services.commands import Command
from identity.services.commands.entity_fields import with_create_fields, with_update_fields
from identity.services.commands.field_types import Name


@with_create_fields(Application)
class RegisterApplication(Command):
    """Register an application (an OIDC client) of a project; it gets a client id and, unless public, a secret.

    Fields that are None get the defaults of the type: web, native and browser applications use the authorization
    code flow; web and API applications keep a secret, native and browser ones cannot."""

    name: Name
    type: ApplicationType
    response_types: frozenset[str] | None = None
    grant_types: frozenset[str] | None = None
    authentication_method: str | None = None


@with_update_fields(Application)
class ChangeApplication(Command):
    """Change the fields that are set; the type stays. A lifetime that is null is inherited from the instance."""

    response_types: frozenset[str] | None = None
    grant_types: frozenset[str] | None = None
