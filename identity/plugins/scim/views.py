"""The view of all requests: reads them, and builds responses."""

import json
from typing import Any

from pydantic import ValidationError
from pyramid.request import Request
from pyramid.response import Response
from scim2_models import SCIMException

from identity.http.endpoint_routes import build_protocol_request
from identity.http.error_views import BodyTooLarge, UnsupportedMediaType
from identity.http.strict_json import parse_json_object
from identity.plugins.scim.bulk import respond_to_bulk
from identity.plugins.scim.collection import ProvisioningCall
from identity.plugins.scim.errors import CONTENT_TYPE, ScimRefusal, build_error, scim_refusal
from identity.plugins.scim.requests import BULK, ScimRequest, ScimResponse, matches_version, respond
from identity.provider.errors import RequestTooLarge

_MEDIA_TYPES = (CONTENT_TYPE, "application/json", "")


def respond_to_call(call: ProvisioningCall) -> Response:
    """Errors are raised, so that the transaction is aborted."""
    request = call.request
    try:
        sent = _read_request(request)
        if sent.path == (BULK,) and sent.method == "POST":
            answer = respond_to_bulk(call, sent.members)
        elif sent.path == (BULK,):
            raise ScimRefusal(405, "", "This address answers POST.", ("POST",))
        else:
            answer = respond(call, sent)
    except (SCIMException, ValidationError) as problem:
        raise ScimRefusal(*scim_refusal(problem)) from None
    except ScimRefusal as refusal:
        if not refusal.allowed:
            raise
        response = build_error(request, refusal.status, refusal.error, str(refusal), {})
        response.headers["Allow"] = ", ".join(refusal.allowed)
        return response
    known = request.environ.get("HTTP_IF_NONE_MATCH")
    if sent.method == "GET" and answer.version and known is not None and matches_version(known, answer.version):
        answer = ScimResponse(304, version=answer.version)
    return _build_response(answer)


def _build_response(answer: ScimResponse) -> Response:
    body = b"" if answer.members is None else json.dumps(answer.members).encode()
    response = Response(body, status=answer.status, content_type=CONTENT_TYPE if body else None, charset=None)
    response.cache_control = "no-store"
    if answer.version is not None:
        response.headers["ETag"] = answer.version
    if answer.location is not None:
        response.headers["Location"] = answer.location
    return response


def _read_request(request: Request) -> ScimRequest:
    """Raises MalformedRequest."""
    try:
        sent = build_protocol_request(request)
    except RequestTooLarge as refusal:
        raise BodyTooLarge(f"{str(refusal.description).capitalize()}.") from None
    method = "GET" if request.method == "HEAD" else request.method
    members: dict[str, Any] = {}
    if sent.body and method in ("POST", "PUT", "PATCH"):
        if sent.content_type not in _MEDIA_TYPES:
            raise UnsupportedMediaType(f"Send the body as {CONTENT_TYPE}.")
        members = parse_json_object(sent.body)
    path = tuple(part for part in request.matchdict["path"] if part)
    return ScimRequest(method, path, members, dict(request.GET), request.environ.get("HTTP_IF_MATCH"))
