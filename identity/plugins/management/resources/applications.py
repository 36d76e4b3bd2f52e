"""Applications: OIDC clients of a project, and their client secrets."""

from identity.domain.applications import Application, ClientSecret
from identity.domain.projects import Project
from identity.http.sector_identifiers import read_sector_list
from identity.plugins.management.access_revocation import (
    REVOCATION_DESCRIPTION,
    RevokedAccessRepresentation,
    represent_revocation,
)
from identity.plugins.management.api_resource import ApiResource, EntityApiResource
from identity.plugins.management.entity_paths import APPLICATION, PROJECT
from identity.plugins.management.operation import EmptyCommand, OperationCall
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands.applications import ChangeApplication, RegisterApplication
from identity.storage.stores.applications import APPLICATION_SORT_KEYS


@representation_fields(Application)
class ApplicationRepresentation(Representation):
    """An application. Its id is the client id; a lifetime that is null is the instance's, others are seconds."""


class RegisteredApplicationRepresentation(ApplicationRepresentation):
    """A new application with its client secret, which is shown only once; null for a public client."""

    client_secret: str | None


@representation_fields(ClientSecret)
class ApplicationSecretRepresentation(Representation):
    """A live client secret, without the secret itself."""


class NewApplicationSecretRepresentation(ApplicationSecretRepresentation):
    """A new client secret, which is shown only once."""

    client_secret: str


def _register(call: OperationCall[Project], command: RegisterApplication) -> RegisteredApplicationRepresentation:
    read_sector_list(call.request, command, organization_id=call.entity.organization_id)
    application, secret = call.request.services.applications.register_with_secret(
        call.entity.id, command, principal=call.principal
    )
    return RegisteredApplicationRepresentation.from_value(application, client_secret=secret)


def _change(call: OperationCall[Application], command: ChangeApplication) -> Application:
    organization_id = call.resource.organization_id or ""
    read_sector_list(call.request, command, organization_id=organization_id, stored=call.entity)
    changed: Application = call.request.services.applications.change(
        call.entity.id, command, principal=call.principal, expected_version=call.expected_version
    )
    return changed


def _add_secret(call: OperationCall[Application], _: EmptyCommand) -> NewApplicationSecretRepresentation:
    added, text = call.services.applications.add_secret(call.entity.id, principal=call.principal)
    return NewApplicationSecretRepresentation.from_value(added, client_secret=text)


def _find_secret(call: OperationCall[Application]) -> ClientSecret:
    secrets = call.services.applications.list_secrets(call.entity.id)
    return call.find_child("client secret", secrets, lambda secret: secret.id)


_APPLICATIONS = EntityApiResource(
    "application",
    ApplicationRepresentation,
    at=APPLICATION,
    change_command=ChangeApplication,
    service=lambda services: services.applications,
)
_SECRETS = ApiResource[ClientSecret](
    "application_secret", ApplicationSecretRepresentation, permission_subject="application"
)

OPERATIONS = (
    _APPLICATIONS.list(
        PROJECT / "applications",
        "Lists the applications of a project, by name by default.",
        lambda call: call.services.storage.applications.page(call.entity.id, call.page),
        orders=APPLICATION_SORT_KEYS,
    ),
    _APPLICATIONS.create(
        "register_application",
        PROJECT / "applications",
        "Registers an application; the response contains its client secret, once.",
        RegisterApplication,
        _register,
        location="/applications/{id}",
        description="Defaults follow from the type: web, native and browser applications sign people in "
        "with a code; native and browser applications are public and have no secret. "
        "`may_manage`, `consent` as `never` and applications of the instance's project need "
        "the permission instance.write.",
        representation=RegisteredApplicationRepresentation,
    ),
    _APPLICATIONS.show("Shows an application."),
    _APPLICATIONS.change(
        APPLICATION,
        "Changes an application.",
        ChangeApplication,
        _change,
        description="Null resets a lifetime to the instance's. An application that becomes public loses its secrets.",
    ),
    _APPLICATIONS.deactivate("Deactivates an application: it gets no tokens until it is reactivated."),
    _APPLICATIONS.reactivate("Reactivates an application."),
    _APPLICATIONS.action(
        "revoke_application_access",
        APPLICATION / "revoke-access",
        "Ends all tokens of an application at once.",
        EmptyCommand,
        lambda call, _: represent_revocation(
            call.services.access_revocations.revoke_application(call.entity.id, principal=call.principal)
        ),
        description=REVOCATION_DESCRIPTION,
        representation=RevokedAccessRepresentation,
    ),
    _APPLICATIONS.remove("Deletes an application with its secrets and tokens."),
    _SECRETS.list(
        APPLICATION / "secrets",
        "Lists the live client secrets of an application, oldest first, without the secrets themselves.",
        lambda call: call.services.applications.list_secrets(call.entity.id),
        is_paged=False,
    ),
    _SECRETS.create(
        "add_application_secret",
        APPLICATION / "secrets",
        "Adds a client secret; the response contains it, once.",
        EmptyCommand,
        _add_secret,
        description="Two may be active, so that one can be replaced without a gap.",
        representation=NewApplicationSecretRepresentation,
    ),
    _SECRETS.get(
        APPLICATION / "secrets/{client_secret}", "Shows when a client secret was created and last used.", _find_secret
    ),
    _SECRETS.delete(
        "remove_application_secret",
        APPLICATION / "secrets/{client_secret}",
        "Revokes a client secret, and the tokens that the application obtained for itself with it.",
        lambda call: call.services.applications.remove_secret(call.entity.id, call.child_id, principal=call.principal),
        permission="application.write",
    ),
)
