"""Keys of service users: made here and handed out once, or made by their owner."""

import json
from typing import Any, Literal

from identity.http import targets
from identity.plugins.management.operation import PAGED, Call, Operation, shown
from identity.plugins.management.representation import Expiration, Moment, Representation
from identity.services.commands.service_users import AddServiceUserKey, UploadServiceUserKey
from identity.storage.paging import Page


class ServiceUserKey(Representation):
    """A key, without its private half, which the service does not have. `expires_at` may be never."""

    id: str
    created_at: Moment
    expires_at: Expiration
    last_used_at: Moment | None


class KeyFile(Representation):
    """The key file, the only copy of the private key: store it as it is, programs read it in this form."""

    type: Literal["serviceaccount"]
    keyId: str  # noqa: N815 - the file's own words
    key: str
    userId: str  # noqa: N815


class NewServiceUserKey(ServiceUserKey):
    """A new key with its key file, which is shown this once; null for an uploaded key."""

    key_file: KeyFile | None


class NewKey(AddServiceUserKey):
    """Add a key: a generated one or, with `public_key` (PEM or a JWK as text), one whose private half stays away."""

    public_key: str | None = None


def _list(call: Call) -> Page[ServiceUserKey]:
    return shown(ServiceUserKey, call.services.service_users.keys(call.value.id, call.page))


def _add(call: Call) -> NewServiceUserKey:
    users, command = call.services.service_users, call.command
    if command.public_key is not None:
        upload = UploadServiceUserKey(public_key=command.public_key, expires_at=command.expires_at)
        return NewServiceUserKey.of(users.upload_key(call.value.id, upload, by=call.by), key_file=None)
    made = users.add_key(call.value.id, command, by=call.by)
    file = KeyFile.model_validate(json.loads(made.to_json()))
    return NewServiceUserKey.of(users.key(call.value.id, made.key_id), key_file=file)


def _show(call: Call) -> ServiceUserKey:
    return ServiceUserKey.of(call.services.service_users.key(call.value.id, call.names["key"]))


def _remove(call: Call) -> None:
    call.services.service_users.remove_key(call.value.id, call.names["key"], by=call.by)


_LIST = "/service-users/{service_user}/keys"
_PATH = f"{_LIST}/{{key}}"
_READ: dict[str, Any] = {"permission": "service_user.read", "target": targets.service_user}
_WRITE: dict[str, Any] = {"permission": "service_user.write", "target": targets.service_user}

OPERATIONS = (
    Operation(
        name="list_service_user_keys",
        method="GET",
        path=_LIST,
        summary="Lists the keys of a service user, newest first.",
        handle=_list,
        answers=ServiceUserKey,
        many=True,
        parameters=PAGED,
        **_READ,
    ),
    Operation(
        name="add_service_user_key",
        method="POST",
        path=_LIST,
        summary="Adds a key to a service user; the answer carries its key file, once.",
        description="Without `expires_at` it works for a year, or what the operator set; `never` has to be said. With"
        " `public_key` none is generated, and there is no key file.",
        handle=_add,
        command=NewKey,
        answers=NewServiceUserKey,
        location="/service-users/{service_user}/keys/{id}",
        **_WRITE,
    ),
    Operation(
        name="show_service_user_key",
        method="GET",
        path=_PATH,
        summary="Shows when a key was made, last used, and expires.",
        handle=_show,
        answers=ServiceUserKey,
        **_READ,
    ),
    Operation(
        name="remove_service_user_key",
        method="DELETE",
        path=_PATH,
        summary="Removes a key: the tokens that it obtained end at once.",
        handle=_remove,
        **_WRITE,
    ),
)
