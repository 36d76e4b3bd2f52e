"""Bulk requests (RFC 7644 §3.7): operations one after another, each in its own transaction."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from pydantic import ValidationError
from scim2_models import InvalidSyntaxException, PayloadTooLargeException, SCIMException

from identity.domain.errors import DomainError
from identity.http.error_views import MalformedRequest
from identity.plugins.scim.collection import ProvisioningCall
from identity.plugins.scim.errors import ScimRefusal, error_response
from identity.plugins.scim.requests import COLLECTIONS, ScimRequest, ScimResponse, respond
from identity.plugins.scim.schemas import MAX_BULK_OPERATIONS

_SCHEMA = "urn:ietf:params:scim:api:messages:2.0:BulkResponse"
_METHODS = ("POST", "PUT", "PATCH", "DELETE")
_REFERENCE = "bulkId:"
_MAX_DEPTH = 20


def respond_to_bulk(call: ProvisioningCall, members: Mapping[str, Any]) -> ScimResponse:
    """The results in the order of the operations. One that refers to another by bulkId runs after it."""
    values = {name.lower(): value for name, value in members.items()}
    operations, most_errors = values.get("operations"), values.get("failonerrors")
    if not isinstance(operations, list) or not all(isinstance(operation, dict) for operation in operations):
        raise InvalidSyntaxException(detail="Operations must be a list of objects.")
    if len(operations) > MAX_BULK_OPERATIONS:
        raise PayloadTooLargeException(detail=f"Send at most {MAX_BULK_OPERATIONS} operations.")
    if most_errors is not None and (not isinstance(most_errors, int) or most_errors < 0):
        raise InvalidSyntaxException(detail="failOnErrors must be a number.")
    results: dict[int, dict[str, Any]] = {}
    ids: dict[str, str] = {}
    errors = 0
    for index in _order(operations):
        results[index] = _run(call, operations[index], ids)
        errors += int(results[index]["status"]) >= 400
        if most_errors and errors >= most_errors:
            break
    return ScimResponse(200, {"schemas": [_SCHEMA], "Operations": [results[index] for index in sorted(results)]})


def _order(operations: list[dict[str, Any]]) -> Iterator[int]:
    """Each operation after those that it refers to; circular ones last, which then fail."""
    makers = {
        operation["bulkId"]: index
        for index, operation in enumerate(operations)
        if isinstance(operation.get("bulkId"), str)
    }
    needed = [
        {makers[name] for name in _references(operation, 0) if name in makers} - {index}
        for index, operation in enumerate(operations)
    ]
    left, done = list(range(len(operations))), set[int]()
    while left:
        index = next((item for item in left if needed[item] <= done), left[0])
        left.remove(index)
        done.add(index)
        yield index


def _references(value: Any, depth: int) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        raise InvalidSyntaxException(detail="The request is nested too deeply.")
    if isinstance(value, str) and _REFERENCE in value:
        yield value.rpartition(_REFERENCE)[2]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        yield from _references(part, depth + 1)


def _resolve(value: Any, ids: Mapping[str, str]) -> Any:
    """The value with ids in place of references. Raises ScimRefusal for one that names no resource."""
    if isinstance(value, dict):
        return {name: _resolve(part, ids) for name, part in value.items()}
    if isinstance(value, list):
        return [_resolve(part, ids) for part in value]
    if not isinstance(value, str) or not value.startswith(_REFERENCE):
        return value
    name = value.removeprefix(_REFERENCE)
    if name not in ids:
        raise ScimRefusal(409, "invalidValue", f"No operation before this one has created bulkId {name[:100]}.")
    return ids[name]


def _run(call: ProvisioningCall, operation: dict[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    """The result of one operation, which is committed or rolled back. A retry of the request does not repeat it."""
    method, bulk_id = str(operation.get("method", "")).upper(), operation.get("bulkId")
    result: dict[str, Any] = {"method": method} | ({"bulkId": bulk_id} if isinstance(bulk_id, str) else {})
    try:
        sent = _read_operation(method, operation, ids)
        answer = call.request.run_once("scim.bulk", partial(respond, call, sent))
    except (DomainError, MalformedRequest, SCIMException, ValidationError) as problem:
        call.request.roll_back()
        refusal = error_response(call.request, problem)
        if method != "POST" and isinstance(operation.get("path"), str):
            result["location"] = call.base_url + operation["path"]
        return {**result, "status": str(refusal.status_code), "response": refusal.json_body}
    result["location"] = answer.location or "/".join((call.base_url, *sent.path))
    if isinstance(bulk_id, str) and answer.members is not None:
        ids[bulk_id] = answer.members["id"]
    if answer.version is not None:
        result["version"] = answer.version
    return {**result, "status": str(answer.status)}


def _read_operation(method: str, operation: dict[str, Any], ids: Mapping[str, str]) -> ScimRequest:
    path, data, version = operation.get("path"), operation.get("data", {}), operation.get("version")
    if method not in _METHODS or not isinstance(path, str) or not isinstance(data, dict):
        raise InvalidSyntaxException(detail="An operation has a method, a path, and data that is an object.")
    if method == "POST" and not isinstance(operation.get("bulkId"), str):
        raise InvalidSyntaxException(detail="A POST operation has a bulkId.")
    parts = tuple(_resolve(part, ids) for part in path.split("/") if part)
    if len(parts) != (1 if method == "POST" else 2) or parts[0] not in COLLECTIONS:
        raise ScimRefusal(
            400, "invalidPath", "The path of an operation is /Users or /Groups, with an id except for POST."
        )
    return ScimRequest(method, parts, _resolve(data, ids), {}, version if isinstance(version, str) else None)
