"""Keys of service users: generated here and returned once, or uploaded by their owner."""

import json
from typing import Literal

from identity.domain.service_user_keys import ServiceUserKey
from identity.domain.users import ServiceUser
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import SERVICE_USER
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import Expiration, Representation, representation_fields
from identity.services.commands.service_users import AddServiceUserKey, UploadServiceUserKey


@representation_fields(ServiceUserKey, without={"user_id"})
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
    """A new key with its key file, which is shown only once; null for an uploaded key."""

    key_file: KeyFileRepresentation | None


class AddServiceUserKeyRequest(AddServiceUserKey):
    """Add a key: a generated one or, with `public_key` (PEM or a JWK as text), the public half of your own."""

    public_key: str | None = None


def _add_key(call: OperationCall[ServiceUser], command: AddServiceUserKeyRequest) -> NewServiceUserKeyRepresentation:
    users = call.services.service_users
    if command.public_key is not None:
        upload = UploadServiceUserKey(
            public_key=command.public_key, expires_at=command.expires_at, algorithm=command.algorithm
        )
        return NewServiceUserKeyRepresentation.from_value(
            users.upload_key(call.entity.id, upload, principal=call.principal), key_file=None
        )
    key_file = users.add_key(call.entity.id, command, principal=call.principal)
    file = KeyFileRepresentation.model_validate(json.loads(key_file.to_json()))
    return NewServiceUserKeyRepresentation.from_value(users.get_key(call.entity.id, key_file.key_id), key_file=file)


_KEYS = ApiResource[ServiceUserKey]("service_user_key", ServiceUserKeyRepresentation, permission_subject="service_user")

OPERATIONS = (
    _KEYS.list(
        SERVICE_USER / "keys",
        "Lists the keys of a service user, newest first.",
        lambda call: call.services.service_users.page_keys(call.entity.id, call.page),
        has_states=False,
    ),
    _KEYS.create(
        "add_service_user_key",
        SERVICE_USER / "keys",
        "Adds a key to a service user; the response contains its key file, once.",
        AddServiceUserKeyRequest,
        _add_key,
        description="Without `expires_at` it is valid for a year, or as long as the operator set; `never` "
        "must be explicit. With `public_key` none is generated, and there is no key file. Assertions must name "
        "exactly the key's `algorithm`: by default RS256 or, for an uploaded key, the one that the JWK names or its "
        "type implies (ES256 for P-256, EdDSA for Ed25519).",
        representation=NewServiceUserKeyRepresentation,
    ),
    _KEYS.get(
        SERVICE_USER / "keys/{key}",
        "Shows when a key was created, last used, and expires.",
        lambda call: call.services.service_users.get_key(call.entity.id, call.child_id),
    ),
    _KEYS.delete(
        "remove_service_user_key",
        SERVICE_USER / "keys/{key}",
        "Removes a key: tokens obtained with it end at once.",
        lambda call: call.services.service_users.remove_key(call.entity.id, call.child_id, principal=call.principal),
        permission="service_user.write",
    ),
)
