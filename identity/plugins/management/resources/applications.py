"""Applications: OIDC clients of a project, and their client secrets."""

from identity.domain import applications
from identity.http import targets
from identity.plugins.management.operation import Call
from identity.plugins.management.representation import Representation, showing
from identity.plugins.management.resource import Resource
from identity.services.commands.applications import ChangeApplication, RegisterApplication
from identity.storage.stores.applications import ORDERS


@showing(applications.Application)
class Application(Representation):
    """An application. Its id is the client id; a lifetime that is null is the instance's, others are seconds."""


class RegisteredApplication(Application):
    """A new application with its client secret, which is shown this once; null for a public client."""

    client_secret: str | None


@showing(applications.ClientSecret)
class ApplicationSecret(Representation):
    """A live client secret, without the secret itself."""


class NewApplicationSecret(ApplicationSecret):
    """A new client secret, which is shown this once."""

    client_secret: str


def _register(call: Call) -> RegisteredApplication:
    application, secret = call.services.applications.register(call.value.id, call.command, by=call.by)
    return RegisteredApplication.of(application, client_secret=secret)


def _add_secret(call: Call) -> NewApplicationSecret:
    added, text = call.services.applications.add_secret(call.value.id, by=call.by)
    return NewApplicationSecret.of(added, client_secret=text)


_APPLICATIONS = Resource(
    kind="application",
    answers=Application,
    path="/applications/{application}",
    list_path="/projects/{project}/applications",
    target=targets.application,
    owner=targets.project,
)
_SECRETS = Resource(
    kind="application_secret",
    answers=ApplicationSecret,
    path="/applications/{application}/secrets/{client_secret}",
    target=targets.application,
    of="application",
    use_cases="applications",
    delete="write",
)

OPERATIONS = (
    _APPLICATIONS.lists(
        "Lists the applications of a project, by name unless said otherwise.",
        lambda call: call.services.storage.applications.page(call.value.id, call.page),
        orders=ORDERS,
    ),
    _APPLICATIONS.makes(
        "register",
        "Registers an application; the answer carries its client secret, once.",
        RegisterApplication,
        _register,
        description="What is not given follows from the type: web, native and browser applications sign people in with"
        " a code; native and browser applications are public and have no secret. `may_manage`, `consent` as `never` and"
        " applications of the own project need the permission instance.write.",
        answers=RegisteredApplication,
    ),
    _APPLICATIONS.shows("Shows an application."),
    _APPLICATIONS.changes(
        "Changes an application.",
        ChangeApplication,
        description="A lifetime that is given as null is the instance's again. An application that becomes public loses"
        " its secrets.",
    ),
    _APPLICATIONS.deactivates("Deactivates an application: it gets no tokens until it is reactivated."),
    _APPLICATIONS.reactivates("Reactivates an application."),
    _APPLICATIONS.removes("Deletes an application with its secrets and tokens."),
    _SECRETS.lists(
        "Lists the live client secrets of an application, oldest first, without the secrets themselves.",
        lambda call: call.services.applications.secrets(call.value.id),
        paged=False,
    ),
    _SECRETS.makes(
        "add",
        "Adds a client secret; the answer carries it, once.",
        None,
        _add_secret,
        description="Two may be live, so that one can be replaced without a gap.",
        answers=NewApplicationSecret,
    ),
    _SECRETS.shows(
        "Shows when a client secret was made and last used.",
        lambda call: _SECRETS.pick(call, call.services.applications.secrets(call.value.id)),
    ),
    _SECRETS.removes(
        "Ends a client secret, and the tokens that the application got for itself by it, at once.",
        _SECRETS.of_part("remove_secret"),
        verb="remove",
    ),
)
