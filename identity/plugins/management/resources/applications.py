"""Applications: OIDC clients of a project, and their client secrets."""

from typing import Any

from identity.domain.applications import ApplicationType, ClientSecret, ConsentRule
from identity.domain.errors import NotFound
from identity.domain.users import TokenFormat
from identity.http import targets
from identity.plugins.management.operation import PAGED, SEARCH, STATES, Call, Operation, shown, sorted_by
from identity.plugins.management.representation import Lifetime, Moment, Representation, State, Versioned, Words
from identity.services.commands.applications import ChangeApplication, RegisterApplication
from identity.storage.paging import Page
from identity.storage.stores.applications import ORDERS


class Application(Versioned):
    """An application. Its id is the client id; a lifetime that is null is the instance's, others are seconds."""

    project_id: str
    name: str
    type: ApplicationType
    authentication_method: str
    response_types: Words
    grant_types: Words
    redirect_uris: tuple[str, ...]
    post_logout_redirect_uris: tuple[str, ...]
    access_token_type: TokenFormat
    access_token_lifetime: Lifetime
    id_token_lifetime: Lifetime
    id_token_userinfo_assertion: bool
    assert_roles_in_access_token: bool
    assert_roles_in_id_token: bool
    consent: ConsentRule
    may_manage: bool
    development: bool
    state: State


class RegisteredApplication(Application):
    """A new application with its client secret, which is shown this once; null for a public client."""

    client_secret: str | None


class ApplicationSecret(Representation):
    """A live client secret, without the secret itself."""

    id: str
    created_at: Moment
    last_used_at: Moment | None


class NewApplicationSecret(ApplicationSecret):
    """A new client secret, which is shown this once."""

    client_secret: str


def _list(call: Call) -> Page[Application]:
    return shown(Application, call.services.storage.applications.page(call.value.id, call.page))


def _register(call: Call) -> RegisteredApplication:
    application, secret = call.services.applications.register(call.value.id, call.command, by=call.by)
    return RegisteredApplication.of(application, client_secret=secret)


def _show(call: Call) -> Application:
    return Application.of(call.value)


def _change(call: Call) -> Application:
    changed = call.services.applications.change(
        call.value.id, call.command, by=call.by, expected_version=call.expected_version
    )
    return Application.of(changed)


def _deactivate(call: Call) -> Application:
    return Application.of(call.services.applications.deactivate(call.value.id, by=call.by))


def _reactivate(call: Call) -> Application:
    return Application.of(call.services.applications.reactivate(call.value.id, by=call.by))


def _delete(call: Call) -> None:
    call.services.applications.remove(call.value.id, by=call.by)


def _list_secrets(call: Call) -> Page[ApplicationSecret]:
    return shown(ApplicationSecret, call.services.applications.secrets(call.value.id))


def _add_secret(call: Call) -> NewApplicationSecret:
    added, text = call.services.applications.add_secret(call.value.id, by=call.by)
    return NewApplicationSecret.of(added, client_secret=text)


def _show_secret(call: Call) -> ApplicationSecret:
    return ApplicationSecret.of(_secret(call))


def _remove_secret(call: Call) -> None:
    call.services.applications.remove_secret(call.value.id, call.names["client_secret"], by=call.by)


def _secret(call: Call) -> ClientSecret:
    for secret in call.services.applications.secrets(call.value.id):
        if secret.id == call.names["client_secret"]:
            return secret
    raise NotFound("client secret", call.names["client_secret"])


_LIST = "/projects/{project}/applications"
_PATH = "/applications/{application}"
_SECRETS = f"{_PATH}/secrets"
_SECRET = f"{_SECRETS}/{{client_secret}}"
_READ: dict[str, Any] = {"permission": "application.read", "target": targets.application}
_WRITE: dict[str, Any] = {"permission": "application.write", "target": targets.application}

OPERATIONS = (
    Operation(
        name="list_applications",
        method="GET",
        path=_LIST,
        summary="Lists the applications of a project, by name unless said otherwise.",
        permission="application.read",
        target=targets.project,
        handle=_list,
        answers=Application,
        many=True,
        parameters=(*PAGED, SEARCH, STATES, sorted_by(ORDERS)),
    ),
    Operation(
        name="register_application",
        method="POST",
        path=_LIST,
        summary="Registers an application; the answer carries its client secret, once.",
        description="What is not given follows from the type: web, native and browser applications sign people in with"
        " a code; native and browser applications are public and have no secret. `may_manage`, `consent` as `never` and"
        " applications of the own project need the permission instance.write.",
        permission="application.write",
        target=targets.project,
        handle=_register,
        command=RegisterApplication,
        answers=RegisteredApplication,
        location="/applications/{id}",
    ),
    Operation(
        name="show_application",
        method="GET",
        path=_PATH,
        summary="Shows an application.",
        handle=_show,
        answers=Application,
        **_READ,
    ),
    Operation(
        name="change_application",
        method="PATCH",
        path=_PATH,
        summary="Changes an application.",
        description="A lifetime that is given as null is the instance's again. An application that becomes public loses"
        " its secrets.",
        handle=_change,
        command=ChangeApplication,
        answers=Application,
        **_WRITE,
    ),
    Operation(
        name="deactivate_application",
        method="POST",
        path=f"{_PATH}/deactivate",
        summary="Deactivates an application: it gets no tokens until it is reactivated.",
        handle=_deactivate,
        answers=Application,
        **_WRITE,
    ),
    Operation(
        name="reactivate_application",
        method="POST",
        path=f"{_PATH}/reactivate",
        summary="Reactivates an application.",
        handle=_reactivate,
        answers=Application,
        **_WRITE,
    ),
    Operation(
        name="delete_application",
        method="DELETE",
        path=_PATH,
        summary="Deletes an application with its secrets and tokens.",
        permission="application.delete",
        target=targets.application,
        handle=_delete,
    ),
    Operation(
        name="list_application_secrets",
        method="GET",
        path=_SECRETS,
        summary="Lists the live client secrets of an application, oldest first, without the secrets themselves.",
        handle=_list_secrets,
        answers=ApplicationSecret,
        many=True,
        **_READ,
    ),
    Operation(
        name="add_application_secret",
        method="POST",
        path=_SECRETS,
        summary="Adds a client secret; the answer carries it, once.",
        description="Two may be live, so that one can be replaced without a gap.",
        handle=_add_secret,
        answers=NewApplicationSecret,
        location="/applications/{application}/secrets/{id}",
        **_WRITE,
    ),
    Operation(
        name="show_application_secret",
        method="GET",
        path=_SECRET,
        summary="Shows when a client secret was made and last used.",
        handle=_show_secret,
        answers=ApplicationSecret,
        **_READ,
    ),
    Operation(
        name="remove_application_secret",
        method="DELETE",
        path=_SECRET,
        summary="Ends a client secret at once.",
        handle=_remove_secret,
        **_WRITE,
    ),
)
