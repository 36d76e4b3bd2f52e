"""Keys of service users: made here and handed out once, or made by their owner."""

import json
from typing import Literal

from identity.domain import service_user_keys
from identity.http import targets
from identity.plugins.management.operation import Call
from identity.plugins.management.representation import Expiration, Representation, showing
from identity.plugins.management.resource import Resource
from identity.services.commands.service_users import AddServiceUserKey, UploadServiceUserKey


@showing(service_user_keys.ServiceUserKey, without={"user_id"})
class ServiceUserKey(Representation):
    """A key, without its private half, which the service does not have. `expires_at` may be never."""

    id: str
    expires_at: Expiration


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


def _add(call: Call) -> NewServiceUserKey:
    users, command = call.services.service_users, call.command
    if command.public_key is not None:
        upload = UploadServiceUserKey(public_key=command.public_key, expires_at=command.expires_at)
        return NewServiceUserKey.of(users.upload_key(call.value.id, upload, by=call.by), key_file=None)
    made = users.add_key(call.value.id, command, by=call.by)
    file = KeyFile.model_validate(json.loads(made.to_json()))
    return NewServiceUserKey.of(users.key(call.value.id, made.key_id), key_file=file)


_KEYS = Resource(
    kind="service_user_key",
    answers=ServiceUserKey,
    path="/service-users/{service_user}/keys/{key}",
    target=targets.service_user,
    of="service_user",
    use_cases="service_users",
    delete="write",
)

OPERATIONS = (
    _KEYS.lists(
        "Lists the keys of a service user, newest first.",
        lambda call: call.services.service_users.keys(call.value.id, call.page),
        states=False,
    ),
    _KEYS.makes(
        "add",
        "Adds a key to a service user; the answer carries its key file, once.",
        NewKey,
        _add,
        description="Without `expires_at` it works for a year, or what the operator set; `never` has to be said. With"
        " `public_key` none is generated, and there is no key file.",
        answers=NewServiceUserKey,
    ),
    _KEYS.shows(
        "Shows when a key was made, last used, and expires.",
        lambda call: call.services.service_users.key(call.value.id, _KEYS.part(call)),
    ),
    _KEYS.removes(
        "Removes a key: the tokens that it obtained end at once.",
        _KEYS.of_part("remove_key"),
        verb="remove",
    ),
)
