"""Errors in the format of SCIM (RFC 7644 §3.12), for everything below /scim/v2."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyramid.request import Request
from pyramid.response import Response

from identity.domain.errors import DomainError
from identity.http.error_views import MalformedRequest, domain_error_view, malformed_request_view

if TYPE_CHECKING:
    from pydantic import ValidationError
    from scim2_models import SCIMException

CONTENT_TYPE = "application/scim+json"
_SCHEMA = "urn:ietf:params:scim:api:messages:2.0:Error"
#: Details and codes of the APIs that SCIM has other words for.
_SCIM_TYPES = {(400, "invalid"): "invalidSyntax", (422, "invalid"): "invalidValue"}
_KNOWN_TYPES = frozenset(
    {"invalidFilter", "tooMany", "uniqueness", "mutability", "invalidSyntax", "invalidPath", "noTarget", "invalidValue"}
)
_ATTRIBUTES = {"user_name": "userName", "email": "emails.value", "name": "displayName"}
_MAX_DETAIL = 500


class ScimRefusal(MalformedRequest):
    """A request that is refused with a SCIM error; ``error`` is its scimType, if it has one."""

    def __init__(self, status: int, error: str, message: str, allowed: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.status, self.error, self.allowed = status, error, allowed


def build_error(request: Request, status: int, error: str, message: str, fields: Mapping[str, str]) -> Response:
    """The error format of the routes."""
    detail = " ".join(f"{_ATTRIBUTES.get(name, name)}: {text}" for name, text in fields.items()) or message
    scim_type = _SCIM_TYPES.get((status, error), error if error in _KNOWN_TYPES else "")
    status = 400 if status == 422 else status
    members = {"schemas": [_SCHEMA], "status": str(status), "detail": detail[:_MAX_DETAIL]}
    if scim_type:
        members["scimType"] = scim_type
    return Response(json.dumps(members).encode(), status=status, content_type=CONTENT_TYPE, charset=None)


def scim_refusal(problem: "SCIMException | ValidationError") -> tuple[int, str, str]:
    """Status, scimType and detail of an error of the models."""
    from scim2_models import Error, SCIMException

    if not isinstance(problem, SCIMException):
        error = Error.from_validation_errors(problem)[0]
        return error.status or 400, error.scim_type or "", error.detail or ""
    return problem.status, problem.scim_type, str(problem)


def error_response(
    request: Request, problem: "DomainError | MalformedRequest | SCIMException | ValidationError"
) -> Response:
    """The response to one operation of a bulk request."""
    if isinstance(problem, DomainError):
        return domain_error_view(problem, request)
    if isinstance(problem, MalformedRequest):
        return malformed_request_view(problem, request)
    return build_error(request, *scim_refusal(problem), {})
