"""Secrets of service users: for programs that cannot sign."""

from typing import Any

from identity.domain import service_user_secrets
from identity.domain.errors import NotFound
from identity.http import targets
from identity.plugins.management.operation import Call, Operation, shown
from identity.plugins.management.representation import Moment, Representation
from identity.storage.paging import Page


class ServiceUserSecret(Representation):
    """A live secret, without the secret itself."""

    id: str
    created_at: Moment
    last_used_at: Moment | None


class NewServiceUserSecret(ServiceUserSecret):
    """A new secret, which is shown this once; the client id is the service user's id."""

    client_secret: str


def _list(call: Call) -> Page[ServiceUserSecret]:
    return shown(ServiceUserSecret, call.services.service_users.secrets(call.value.id))


def _add(call: Call) -> NewServiceUserSecret:
    added, text = call.services.service_users.add_secret(call.value.id, by=call.by)
    return NewServiceUserSecret.of(added, client_secret=text)


def _show(call: Call) -> ServiceUserSecret:
    return ServiceUserSecret.of(_secret(call))


def _remove(call: Call) -> None:
    call.services.service_users.remove_secret(call.value.id, call.names["secret"], by=call.by)


def _secret(call: Call) -> service_user_secrets.ServiceUserSecret:
    for secret in call.services.service_users.secrets(call.value.id):
        if secret.id == call.names["secret"]:
            return secret
    raise NotFound("secret", call.names["secret"])


_LIST = "/service-users/{service_user}/secrets"
_PATH = f"{_LIST}/{{secret}}"
_READ: dict[str, Any] = {"permission": "service_user.read", "target": targets.service_user}
_WRITE: dict[str, Any] = {"permission": "service_user.write", "target": targets.service_user}

OPERATIONS = (
    Operation(
        name="list_service_user_secrets",
        method="GET",
        path=_LIST,
        summary="Lists the live secrets of a service user, oldest first, without the secrets themselves.",
        handle=_list,
        answers=ServiceUserSecret,
        many=True,
        **_READ,
    ),
    Operation(
        name="add_service_user_secret",
        method="POST",
        path=_LIST,
        summary="Adds a secret to a service user; the answer carries it, once.",
        description="Two may be live, so that one can be replaced without a gap.",
        handle=_add,
        answers=NewServiceUserSecret,
        location="/service-users/{service_user}/secrets/{id}",
        **_WRITE,
    ),
    Operation(
        name="show_service_user_secret",
        method="GET",
        path=_PATH,
        summary="Shows when a secret was made and last used.",
        handle=_show,
        answers=ServiceUserSecret,
        **_READ,
    ),
    Operation(
        name="remove_service_user_secret",
        method="DELETE",
        path=_PATH,
        summary="Ends a secret, and the tokens that it obtained, at once.",
        handle=_remove,
        **_WRITE,
    ),
)
