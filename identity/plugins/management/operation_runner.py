"""Runs an operation within the request of a console page: with its session, transaction and caller."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from pyramid.httpexceptions import HTTPForbidden
from pyramid.interfaces import IRoutesMapper, ISecurityPolicy
from pyramid.response import Response
from pyramid.security import Allowed

from identity.domain.errors import DomainError
from identity.http.environ_keys import PEER_KEY
from identity.http.error_views import MalformedRequest, domain_error_view, forbidden_view, malformed_request_view
from identity.http.request import IdentityRequest
from identity.http.request_ids import REQUEST_ID_KEY
from identity.http.security_policy import SecurityPolicy
from identity.plugins.management.openapi import documented_path
from identity.plugins.management.operation import JSON_MEDIA_TYPE
from identity.plugins.management.operation_views import PATH_PREFIX, ROUTE_NAME_PREFIX, OperationView

#: Who sends the request, for limits and the audit trail.
_CLIENT_KEYS = ("REMOTE_ADDR", PEER_KEY, REQUEST_ID_KEY)


@dataclass(frozen=True, slots=True)
class OperationResult:
    """``text`` is the JSON body, indented; empty without a body."""

    status: int
    text: str

    @property
    def is_successful(self) -> bool:
        return self.status < 400


def run_operation(
    page_request: IdentityRequest,
    view: OperationView,
    *,
    path_values: Mapping[str, str],
    query: Mapping[str, str],
    body: str,
) -> OperationResult:
    """The response that the API would give to the caller of the page. Changes are rolled back after an error, except
    those that the operation has committed.
    """
    operation = view.operation
    path = PATH_PREFIX + documented_path(operation).format_map(
        {name: quote(value, safe="") for name, value in path_values.items()}
    )
    request = IdentityRequest.blank(
        f"{path}?{urlencode(query)}" if query else path,
        environ={key: page_request.environ[key] for key in _CLIENT_KEYS if key in page_request.environ},
        base_url=page_request.registry.application.settings.base_url,
        method=operation.method,
        body=body.encode() if operation.method in ("POST", "PATCH") else b"",
        content_type=JSON_MEDIA_TYPE,
    )
    request.registry, request.matchdict = page_request.registry, dict(path_values)
    request.matched_route = request.registry.getUtility(IRoutesMapper).get_route(ROUTE_NAME_PREFIX + operation.name)
    request.share_services(page_request)
    policy: SecurityPolicy = request.registry.getUtility(ISecurityPolicy)
    policy.assume_identity(request, page_request.identity)
    try:
        response = _call(view, request, policy)
    except (DomainError, MalformedRequest, HTTPForbidden) as problem:
        page_request.roll_back()
        response = _error_response(problem, request)
    text = json.dumps(response.json, indent=2, ensure_ascii=False) if response.body else ""
    return OperationResult(response.status_code, text)


def _call(view: OperationView, request: IdentityRequest, policy: SecurityPolicy) -> Response:
    context = view.operation.context_factory(request)
    permitted = policy.permits(request, context, view.operation.permission)
    if not isinstance(permitted, Allowed):
        raise HTTPForbidden(result=permitted)
    return view(context, request)


def _error_response(problem: Exception, request: IdentityRequest) -> Response:
    if isinstance(problem, DomainError):
        return domain_error_view(problem, request)
    if isinstance(problem, MalformedRequest):
        return malformed_request_view(problem, request)
    return forbidden_view(problem, request)
