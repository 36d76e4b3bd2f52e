"""Requests to resources, alone or in bulk: which resource, with which permission, and the response."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scim2_models import (
    Context,
    InvalidPathException,
    InvalidValueException,
    MutabilityException,
    PatchOp,
    PayloadTooLargeException,
)

from identity.http.error_views import PreconditionFailed
from identity.plugins.scim import queries
from identity.plugins.scim.collection import ProvisioningCall, ResourceCollection
from identity.plugins.scim.errors import ScimRefusal
from identity.plugins.scim.groups import GroupCollection, read_member_changes
from identity.plugins.scim.schemas import (
    MAX_FILTER_LENGTH,
    POLICY,
    endpoint_name,
    resource_types,
    schemas,
    service_provider_config,
)
from identity.plugins.scim.users import UserCollection

COLLECTIONS: dict[str, type[ResourceCollection]] = {
    endpoint_name(collection.resource_type): collection for collection in (UserCollection, GroupCollection)
}
BULK = "Bulk"
_DISCOVERY_PERMISSION = "organization.read"
_MAX_PATCH_OPERATIONS = 200
_NO_PASSWORDS = "SCIM sets no passwords here. People choose their own, or sign in at your identity provider."


@dataclass(frozen=True)
class ScimRequest:
    """A request below the organization's base URL, alone or in a bulk request."""

    method: str
    path: tuple[str, ...]
    members: dict[str, Any]
    parameters: Mapping[str, Any]
    if_match: str | None = None


@dataclass(frozen=True)
class ScimResponse:
    """``version`` is the entity tag."""

    status: int
    members: dict[str, Any] | None = None
    version: str | None = None
    location: str | None = None


def respond(call: ProvisioningCall, sent: ScimRequest) -> ScimResponse:
    """The response of the resource that the path names. Raises DomainError, MalformedRequest, SCIMException and
    ValidationError."""
    match sent.path:
        case ("Me", *_):
            raise ScimRefusal(501, "", "A provisioning program is no SCIM user, so /Me is not available.")
        case (("ServiceProviderConfig" | "ResourceTypes" | "Schemas"), *rest) if len(rest) <= 1:
            _require_method(sent, "GET")
            call.require(_DISCOVERY_PERMISSION)
            return _describe(call, sent)
        case (".search",):
            _require_method(sent, "POST")
            return _search(call, [collection(call) for collection in COLLECTIONS.values()], sent.members)
        case (name, ".search") if name in COLLECTIONS:
            _require_method(sent, "POST")
            return _search(call, [COLLECTIONS[name](call)], sent.members)
        case (name,) if name in COLLECTIONS:
            _require_method(sent, "GET", "POST")
            if sent.method == "GET":
                return _search(call, [COLLECTIONS[name](call)], sent.parameters)
            return _create(COLLECTIONS[name](call), sent)
        case (name, id) if name in COLLECTIONS:
            _require_method(sent, "GET", "PUT", "PATCH", "DELETE")
            return _ask_resource(COLLECTIONS[name](call), id, sent)
    raise ScimRefusal(404, "", "There is nothing at this address.")


def _require_method(sent: ScimRequest, *methods: str) -> None:
    if sent.method not in methods:
        raise ScimRefusal(405, "", f"This address answers {', '.join(methods)}.", methods)


def _describe(call: ProvisioningCall, sent: ScimRequest) -> ScimResponse:
    endpoint, *names = sent.path
    if any(name.lower() == "filter" for name in sent.parameters):
        # RFC 7644 §4.
        raise ScimRefusal(403, "", "This endpoint takes no filter.")
    if endpoint == "ServiceProviderConfig":
        documentation = f"{call.request.registry.application.settings.login_url}/docs/how-to/administrators/scim.html"
        described = [service_provider_config(call.base_url, documentation)] if not names else []
    else:
        described = (resource_types if endpoint == "ResourceTypes" else schemas)(call.base_url)
        if not names:
            members = [item.model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE) for item in described]
            return ScimResponse(
                200,
                {
                    "schemas": ["urn:ietf:params:scim:api:messages:2.0:ListResponse"],
                    "totalResults": len(members),
                    "startIndex": 1,
                    "itemsPerPage": len(members),
                    "Resources": members,
                },
            )
        described = [item for item in described if str(item.id) == names[0]]
    if not described:
        raise ScimRefusal(404, "", "There is nothing at this address.")
    return ScimResponse(200, described[0].model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE))


def _search(
    call: ProvisioningCall, collections: list[ResourceCollection], parameters: Mapping[str, Any]
) -> ScimResponse:
    for collection in collections:
        call.require(collection.read_permission)
    query = queries.parse_query(collections, parameters)
    found = queries.search(collections, query)
    return ScimResponse(200, queries.dump(found, query, Context.SEARCH_RESPONSE))


def _create(collection: ResourceCollection, sent: ScimRequest) -> ScimResponse:
    collection.call.require(collection.write_permission)
    query = queries.parse_query([collection], sent.parameters)
    resource = collection.model.model_validate(
        sent.members, scim_ctx=Context.RESOURCE_CREATION_REQUEST, scim_policy=POLICY
    )
    return _to_response(collection.create(resource), query, Context.RESOURCE_CREATION_RESPONSE, 201)


def _ask_resource(collection: ResourceCollection, id: str, sent: ScimRequest) -> ScimResponse:
    call = collection.call
    query = queries.parse_query([collection], sent.parameters)
    if sent.method == "GET":
        call.require(collection.read_permission)
        return _to_response(collection.get(id), query, Context.RESOURCE_QUERY_RESPONSE, 200)
    call.require(collection.delete_permission if sent.method == "DELETE" else collection.write_permission)
    if isinstance(collection, GroupCollection):
        changes = _read_member_changes(sent)
        if changes is not None:
            collection.change_members(id, changes)
            return ScimResponse(204)
        collection.includes_members = True
    before = collection.get(id)
    if sent.if_match is not None and not matches_version(sent.if_match, before.meta.version):
        raise PreconditionFailed("The resource has changed. Read it again, then repeat your request.")
    if sent.method == "DELETE":
        collection.delete(id)
        return ScimResponse(204)
    if sent.method == "PUT":
        after, context = _read_replacement(collection, sent.members, before), Context.RESOURCE_REPLACEMENT_RESPONSE
        return _to_response(collection.save(id, before, after, is_replaced=True), query, context, 200)
    operations = _read_operations(sent.members)
    after = before.model_copy(deep=True)
    patch = PatchOp.__class_getitem__(collection.model).model_validate(
        {**sent.members, "Operations": operations}, scim_ctx=Context.RESOURCE_PATCH_REQUEST, scim_policy=POLICY
    )
    patch.patch(after, scim_policy=POLICY)
    if isinstance(collection, UserCollection) and after.active is None:
        raise MutabilityException(attribute="active", detail="active cannot be removed. Replace it by true or false.")
    is_replaced = any(str(operation.get("op", "")).lower() == "replace" for operation in operations)
    saved = collection.save(id, before, after, is_replaced=is_replaced)
    return _to_response(saved, query, Context.RESOURCE_PATCH_RESPONSE, 200)


def _read_member_changes(sent: ScimRequest) -> dict[str, bool] | None:
    """The members that a PATCH request changes, unless it needs the others: for a version, a response, or an error."""
    if sent.method != "PATCH" or sent.if_match is not None or sent.parameters:
        return None
    if sent.members.get("schemas") != [str(PatchOp.__schema__)]:
        return None
    return read_member_changes(_read_operations(dict(sent.members)))


def _read_replacement(collection: ResourceCollection, members: dict[str, Any], before: Any) -> Any:
    _refuse_password(members)
    after = collection.model.model_validate(members, scim_ctx=Context.RESOURCE_REPLACEMENT_REQUEST, scim_policy=POLICY)
    after.replace(before)
    return after


def _read_operations(members: dict[str, Any]) -> list[dict[str, Any]]:
    """The operations of a PATCH request in the form of the specification, from the forms that are sent."""
    name = next((name for name in members if name.lower() == "operations"), None)
    sent = members.pop(name) if name is not None else None
    if not isinstance(sent, list) or not sent or not all(isinstance(operation, dict) for operation in sent):
        raise InvalidValueException(detail="Operations must be a list of one or more objects.")
    if len(sent) > _MAX_PATCH_OPERATIONS:
        raise PayloadTooLargeException(detail=f"Send at most {_MAX_PATCH_OPERATIONS} operations.")
    operations = []
    for operation in sent:
        values = {key.lower(): value for key, value in operation.items()}
        path, value = values.get("path"), values.get("value")
        if path is not None and (not isinstance(path, str) or len(path) > MAX_FILTER_LENGTH):
            raise InvalidPathException(detail=f"path must be a text of at most {MAX_FILTER_LENGTH} characters.")
        if path is not None and "\\u" in path:
            # An escape could stand for a character that cannot be stored.
            raise InvalidPathException(detail="Write the characters of path as they are, without escapes.")
        if path is None or not path.strip():
            values.pop("path", None)
            _refuse_password(value if isinstance(value, dict) else {})
        else:
            _refuse_password({path: value})
            values["value"] = _attribute_value(path, value, is_removed=str(values.get("op")).lower() == "remove")
            if value is None and "value" not in (key.lower() for key in operation):
                values.pop("value")
        operations.append(values)
    return operations


def _attribute_value(path: str, value: Any, *, is_removed: bool) -> Any:
    """Entra sends the manager as an id, or as a list of one, and members that it removes with an empty $ref."""
    name = path.lower().rpartition(":")[2]
    if name == "members" and isinstance(value, list):
        names = ("value",) if is_removed else ("value", "type")
        return [
            {name: item[name] for name in names if name in item} if isinstance(item, dict) else item for item in value
        ]
    if name != "manager":
        return value
    if isinstance(value, str):
        return {"value": value} if value else None
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _refuse_password(members: Mapping[str, Any]) -> None:
    """A new user's password is ignored, as Okta always sends one; a change that has no effect is refused."""
    if any(name.strip().lower().rpartition(":")[2] == "password" for name in members):
        raise InvalidValueException(attribute="password", detail=_NO_PASSWORDS)


def _to_response(resource: Any, query: Any, context: Context, status: int) -> ScimResponse:
    meta = resource.meta
    return ScimResponse(status, queries.dump(resource, query, context), meta.version, meta.location)


def matches_version(header: str, version: str | None) -> bool:
    """Whether If-Match or If-None-Match names the version. SCIM's versions are weak entity tags, also in If-Match."""
    return header.strip() == "*" or version in [tag.strip() for tag in header.split(",")]
