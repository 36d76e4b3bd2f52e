"""Applications: OIDC clients of a project, and their client secrets."""

from identity.domain import applications
from identity.http import route_contexts
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands.applications import ChangeApplication, RegisterApplication
from identity.storage.stores.applications import APPLICATION_SORT_KEYS


@representation_fields(applications.Application)
class ApplicationRepresentation(Representation):
    """An application. Its id is the client id; a lifetime that is null is the instance's, others are seconds."""


class RegisteredApplicationRepresentation(ApplicationRepresentation):
    """A new application with its client secret, which is shown this once; null for a public client."""

    client_secret: str | None


@representation_fields(applications.ClientSecret)
class ApplicationSecretRepresentation(Representation):
    """A live client secret, without the secret itself."""


class NewApplicationSecretRepresentation(ApplicationSecretRepresentation):
    """A new client secret, which is shown this once."""

    client_secret: str


def _register(call: OperationCall) -> RegisteredApplicationRepresentation:
    application, secret = call.services.applications.register_with_secret(
        call.entity.id, call.command, principal=call.principal
    )
    return RegisteredApplicationRepresentation.from_value(application, client_secret=secret)


def _add_secret(call: OperationCall) -> NewApplicationSecretRepresentation:
    added, text = call.services.applications.add_secret(call.entity.id, principal=call.principal)
    return NewApplicationSecretRepresentation.from_value(added, client_secret=text)


_APPLICATIONS = ApiResource(
    kind="application",
    representation=ApplicationRepresentation,
    path="/applications/{application}",
    list_path="/projects/{project}/applications",
    context_factory=route_contexts.application_context,
    parent_context_factory=route_contexts.project_context,
)
_SECRETS = ApiResource(
    kind="application_secret",
    representation=ApplicationSecretRepresentation,
    path="/applications/{application}/secrets/{client_secret}",
    context_factory=route_contexts.application_context,
    permission_subject="application",
    service="applications",
    delete_permission="write",
)

OPERATIONS = (
    _APPLICATIONS.list_operation(
        "Lists the applications of a project, by name unless said otherwise.",
        lambda call: call.services.storage.applications.page(call.entity.id, call.page),
        orders=APPLICATION_SORT_KEYS,
    ),
    _APPLICATIONS.create_operation(
        "register",
        "Registers an application; the answer carries its client secret, once.",
        RegisterApplication,
        _register,
        description="What is not given follows from the type: web, native and browser applications sign people in with"
        " a code; native and browser applications are public and have no secret. `may_manage`, `consent` as `never` and"
        " applications of the own project need the permission instance.write.",
        representation=RegisteredApplicationRepresentation,
    ),
    _APPLICATIONS.get_operation("Shows an application."),
    _APPLICATIONS.update_operation(
        "Changes an application.",
        ChangeApplication,
        description="A lifetime that is given as null is the instance's again. An application that becomes public loses"
        " its secrets.",
    ),
    _APPLICATIONS.deactivate_operation("Deactivates an application: it gets no tokens until it is reactivated."),
    _APPLICATIONS.reactivate_operation("Reactivates an application."),
    _APPLICATIONS.delete_operation("Deletes an application with its secrets and tokens."),
    _SECRETS.list_operation(
        "Lists the live client secrets of an application, oldest first, without the secrets themselves.",
        lambda call: call.services.applications.list_secrets(call.entity.id),
        paged=False,
    ),
    _SECRETS.create_operation(
        "add",
        "Adds a client secret; the answer carries it, once.",
        None,
        _add_secret,
        description="Two may be live, so that one can be replaced without a gap.",
        representation=NewApplicationSecretRepresentation,
    ),
    _SECRETS.get_operation(
        "Shows when a client secret was made and last used.",
        lambda call: _SECRETS.find_child(call, call.services.applications.list_secrets(call.entity.id)),
    ),
    _SECRETS.delete_operation(
        "Ends a client secret, and the tokens that the application got for itself by it, at once.",
        _SECRETS.child_handler("remove_secret"),
        verb="remove",
    ),
)
