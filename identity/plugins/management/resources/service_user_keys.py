"""Keys of service users: made here and handed out once, or made by their owner."""

import json
from typing import Literal

from identity.domain import service_user_keys
from identity.http import route_contexts
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import Expiration, Representation, representation_fields
from identity.services.commands.service_users import AddServiceUserKey, UploadServiceUserKey


@representation_fields(service_user_keys.ServiceUserKey, without={"user_id"})
class ServiceUserKeyRepresentation(Representation):
    """A key, without its private half, which the service does not have. `expires_at` may be never."""

    id: str
    expires_at: Expiration


class KeyFileRepresentation(Representation):
    """The key file, the only copy of the private key: store it as it is, programs read it in this form."""

    type: Literal["serviceaccount"]
    keyId: str  # noqa: N815 - the file's own words
    key: str
    userId: str  # noqa: N815


class NewServiceUserKeyRepresentation(ServiceUserKeyRepresentation):
    """A new key with its key file, which is shown this once; null for an uploaded key."""

    key_file: KeyFileRepresentation | None


class AddServiceUserKeyRequest(AddServiceUserKey):
    """Add a key: a generated one or, with `public_key` (PEM or a JWK as text), the public half of your own."""

    public_key: str | None = None


def _add_key(call: OperationCall) -> NewServiceUserKeyRepresentation:
    users, command = call.services.service_users, call.command
    if command.public_key is not None:
        upload = UploadServiceUserKey(public_key=command.public_key, expires_at=command.expires_at)
        return NewServiceUserKeyRepresentation.from_value(
            users.upload_key(call.entity.id, upload, principal=call.principal), key_file=None
        )
    key_file = users.add_key(call.entity.id, command, principal=call.principal)
    file = KeyFileRepresentation.model_validate(json.loads(key_file.to_json()))
    return NewServiceUserKeyRepresentation.from_value(users.get_key(call.entity.id, key_file.key_id), key_file=file)


_KEYS = ApiResource(
    kind="service_user_key",
    representation=ServiceUserKeyRepresentation,
    path="/service-users/{service_user}/keys/{key}",
    context_factory=route_contexts.service_user_context,
    permission_subject="service_user",
    service="service_users",
    delete_permission="write",
)

OPERATIONS = (
    _KEYS.list_operation(
        "Lists the keys of a service user, newest first.",
        lambda call: call.services.service_users.page_keys(call.entity.id, call.page),
        states=False,
    ),
    _KEYS.create_operation(
        "add",
        "Adds a key to a service user; the answer carries its key file, once.",
        AddServiceUserKeyRequest,
        _add_key,
        description="Without `expires_at` it works for a year, or what the operator set; `never` has to be said. With"
        " `public_key` none is generated, and there is no key file.",
        representation=NewServiceUserKeyRepresentation,
    ),
    _KEYS.get_operation(
        "Shows when a key was made, last used, and expires.",
        lambda call: call.services.service_users.get_key(call.entity.id, _KEYS.child_id(call)),
    ),
    _KEYS.delete_operation(
        "Removes a key: the tokens that it obtained end at once.",
        _KEYS.child_handler("remove_key"),
        verb="remove",
    ),
)
