"""The OpenAPI 3.1 document, generated from the operations."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from pydantic import BaseModel

from identity.api.plugins import __version__
from identity.plugins.management.json_schemas import (
    JsonObject,
    component_name,
    component_schemas,
    input_schema,
    schema_reference,
)
from identity.plugins.management.operation import (
    CSV_MEDIA_TYPE,
    JSON_MEDIA_TYPE,
    Operation,
    OperationGroup,
    one_time_members,
    readable_representations,
)
from identity.plugins.management.operation_views import PATH_PREFIX
from identity.plugins.management.representation import Representation
from identity.storage.paging import MAX_COUNTED_ROWS

_PATTERN = re.compile(r"\{(\w+)(?::[^}]*)?\}")

_DESCRIPTION = """\
Everything that the console can do, for programs. Send an access token whose audience includes the
instance's project (request the scope that `/instance` returns as `audience_scope`); its permissions
are the manager roles of its user.

Identifiers are opaque. Times are RFC 3339 in UTC, lifetimes whole seconds. Lists are paged: send
`next_cursor` as `cursor` until it is null. `ETag` identifies a version: send it as `If-Match` with
a change, so that no other change is overwritten. A POST with an `Idempotency-Key` can be repeated:
it returns the same response and is not run twice. Secrets that are shown once are not stored: the
response to a repetition is then 409, with the address of the new resource."""

_ERRORS: Mapping[int, str] = {
    400: "The request cannot be read.",
    401: "No valid access token for this service was sent.",
    403: "The caller's manager roles do not permit this.",
    404: "The resource does not exist, or the caller may not see it.",
    409: "The request conflicts with the current state.",
    412: "The resource has changed since the client read it.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    421: "The service is not available at this host name.",
    422: "Some fields need a change; `fields` says which, and what to do.",
    503: "The service cannot answer just now.",
}
_COMMON_STATUSES = (400, 401, 403, 404, 421, 422, 503)
_WRITE_STATUSES = (409, 412)
_BODY_STATUSES = (413, 415)

_ERROR = {
    "type": "object",
    "description": "What went wrong.",
    "properties": {
        "error": {"type": "string", "description": "What kind of error this is, for programs."},
        "message": {"type": "string", "description": "A sentence for people."},
        "fields": {
            "type": "object",
            "description": "For each field or parameter that needs a change, a sentence that says what to do.",
            "additionalProperties": {"type": "string"},
        },
        "request_id": {
            "type": "string",
            "description": "Give it to the people who run the service when you report a problem.",
        },
    },
    "required": ["error", "message", "request_id"],
    "additionalProperties": False,
}

_HEADERS: Mapping[str, JsonObject] = {
    "ETag": {"description": "The version, for If-Match and If-None-Match.", "schema": {"type": "string"}},
    "Location": {"description": "The address of the new resource.", "schema": {"type": "string", "format": "uri"}},
    "WWW-Authenticate": {"description": "The challenge of RFC 6750 §3.", "schema": {"type": "string"}},
    "Retry-After": {"description": "After how many seconds to try again.", "schema": {"type": "string"}},
}
_PARAMETERS: Mapping[str, str] = {
    "If-Match": "The ETag of the version to change. If the resource has another version, the response is 412.",
    "If-None-Match": "The ETag that the client has. If it is still current, the response is 304.",
    "Idempotency-Key": "A key chosen by the client, 1 to 255 printable characters, valid for 24 hours.",
}


def build_document(base_url: str, groups: Sequence[OperationGroup]) -> JsonObject:
    """The document for this base URL."""
    operations = [operation for group in groups for operation in group.operations]
    readable = readable_representations(operations)
    paths: JsonObject = {}
    for group in groups:
        for operation in group.operations:
            path = documented_path(operation)
            methods = paths.setdefault(path, {})
            methods[operation.method.lower()] = _operation_object(operation, group.tag, readable)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Management API", "version": __version__, "description": _DESCRIPTION},
        "servers": [{"url": f"{base_url}{PATH_PREFIX}"}],
        "security": [{"bearer": []}],
        "tags": [{"name": group.tag, "description": group.description} for group in groups],
        "paths": paths,
        "components": {
            "schemas": _schemas(operations),
            "responses": {f"Error{status}": _error_response(status) for status in _ERRORS},
            "parameters": {
                name: {"name": name, "in": "header", "description": description, "schema": {"type": "string"}}
                for name, description in _PARAMETERS.items()
            },
            "headers": _HEADERS,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation_object(operation: Operation, tag: str, readable: Collection[type[Representation]]) -> JsonObject:
    document: JsonObject = {
        "operationId": operation.name,
        "tags": [tag],
        "summary": operation.summary,
        "parameters": [*_path_parameters(operation), *_query_parameters(operation), *_header_parameters(operation)],
        "responses": _responses(operation),
        "x-permission": operation.permission,
    }
    if operation.description:
        document["description"] = operation.description
    once = sorted(one_time_members(operation, readable)) if operation.method == "POST" else []
    if once:
        document["x-shown-once"] = once
    if operation.method in ("POST", "PATCH"):
        required = bool(input_schema(operation.command).get("required"))
        content: JsonObject = {JSON_MEDIA_TYPE: {"schema": schema_reference(operation.command)}}
        if operation.file_handler is not None:
            content[CSV_MEDIA_TYPE] = {"schema": {"type": "string"}}
        document["requestBody"] = {"required": required, "content": content}
    return document


def documented_path(operation: Operation) -> str:
    """The path without the patterns of its variables."""
    return _PATTERN.sub(r"{\1}", operation.path)


def _path_parameters(operation: Operation) -> list[JsonObject]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": f"The {'key' if name == 'role' else 'id'} of the {name.replace('_', ' ')}.",
            "schema": {"type": "string", "minLength": 1},
        }
        for name in _PATTERN.findall(operation.path)
    ]


def _query_parameters(operation: Operation) -> list[JsonObject]:
    parameters = [(parameter.name, parameter.description, parameter.schema) for parameter in operation.parameters]
    if operation.filters is not None:
        properties = _inline_schema(input_schema(operation.filters))
        parameters += [(name, "", schema) for name, schema in properties.items()]
    return [
        {"name": name, "in": "query", "schema": schema} | ({"description": description} if description else {})
        for name, description, schema in parameters
    ]


def _inline_schema(schema: JsonObject) -> JsonObject:
    """Query parameters as inline schemas, without null and without references."""
    found = {}
    for name, member in schema["properties"].items():
        options = [option for option in member.get("anyOf", [member]) if option.get("type") != "null"]
        [option] = options
        target = option.get("$ref")
        found[name] = option if target is None else schema["$defs"][target.rpartition("/")[2]]
        found[name] = {key: value for key, value in found[name].items() if key != "default"}
    return found


def _header_parameters(operation: Operation) -> list[dict[str, str]]:
    names = ["If-None-Match"] if operation.method == "GET" else ["If-Match"]
    if operation.method == "POST":
        names.append("Idempotency-Key")
    return [{"$ref": f"#/components/parameters/{name}"} for name in names]


def _responses(operation: Operation) -> JsonObject:
    statuses = list(_COMMON_STATUSES)
    if operation.method != "GET":
        statuses += _WRITE_STATUSES
    if operation.method in ("POST", "PATCH"):
        statuses += _BODY_STATUSES
    responses: JsonObject = {str(operation.status): _success_response(operation)}
    if operation.method == "GET":
        responses["304"] = {"description": "The client has the current version.", "headers": _headers("ETag")}
    return responses | {str(status): {"$ref": f"#/components/responses/Error{status}"} for status in sorted(statuses)}


def _success_response(operation: Operation) -> JsonObject:
    if operation.media_type != JSON_MEDIA_TYPE:
        return {"description": "The file.", "content": {operation.media_type: {"schema": {"type": "string"}}}}
    if operation.representation is None:
        return {"description": "Done."}
    schema = schema_reference(operation.representation)
    if operation.returns_list:
        schema = {"$ref": f"{schema['$ref']}List"}
    names = ("ETag",) if operation.location is None else ("ETag", "Location")
    return {
        "description": _docstring_paragraph(operation.representation.__doc__)
        if not operation.returns_list
        else "The list.",
        "headers": _headers(*names),
        "content": {JSON_MEDIA_TYPE: {"schema": schema}},
    }


def _error_response(status: int) -> JsonObject:
    response: JsonObject = {
        "description": _ERRORS[status],
        "content": {JSON_MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    if status == 421:
        response["content"] = {"text/plain": {"schema": {"type": "string"}}}
    if status == 401:
        response["headers"] = _headers("WWW-Authenticate")
    if status == 503:
        response["headers"] = _headers("Retry-After")
    return response


def _headers(*names: str) -> JsonObject:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _schemas(operations: Iterable[Operation]) -> JsonObject:
    sent: dict[type[BaseModel], None] = {}
    returned: dict[type[BaseModel], None] = {}
    listed: dict[type[BaseModel], None] = {}
    for operation in operations:
        if operation.method in ("POST", "PATCH"):
            sent[operation.command] = None
        if operation.representation is not None:
            returned[operation.representation] = None
            if operation.returns_list:
                listed[operation.representation] = None
    schemas = component_schemas([*sent], [*returned])
    schemas |= {f"{component_name(model)}List": _list_schema(model) for model in listed}
    return dict(sorted((schemas | {"Error": _ERROR}).items()))


def _list_schema(model: type[BaseModel]) -> JsonObject:
    return {
        "type": "object",
        "description": "Rows, and the cursor of the next page: null on the last one.",
        "properties": {
            "items": {"type": "array", "items": schema_reference(model)},
            "next_cursor": {"type": ["string", "null"]},
            "total": {
                "type": ["integer", "null"],
                "maximum": MAX_COUNTED_ROWS,
                "description": "How many rows all pages have, counted so far; null if they are not counted.",
            },
            "total_is_exact": {"type": "boolean", "description": "False if there are more than `total`."},
        },
        "required": ["items", "next_cursor", "total", "total_is_exact"],
        "additionalProperties": False,
    }


def _docstring_paragraph(text: str | None) -> str:
    return " ".join((text or "").split())
