"""The registration endpoint: clients register with POST (RFC 7591), and read, replace and delete their configuration
with GET, PUT and DELETE at the address with their client id (RFC 7592).

A registration::

    POST /oauth/v2/register?project=PROJECT_ID
    Content-Type: application/json

    {"client_name": "Reports", "redirect_uris": ["https://reports.example/callback"]}

With an initial access token, which names its project, ``project`` is left out.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from identity.api.endpoints import (
    Context,
    Endpoint,
    EndpointHost,
    InvalidRequest,
    OAuthError,
    Parameters,
    ProtocolRequest,
    ProtocolResponse,
)
from identity.api.entities import (
    Application,
    ApplicationOrigin,
    ClientRegistration,
    DomainError,
    Invalid,
    NotFound,
    Project,
)
from identity.api.services import ChangeApplication, Principal, RecordNamespace, RegisterApplication, Services
from identity.plugins.dynamic_registration.client_records import ClientRecords
from identity.plugins.dynamic_registration.metadata import (
    InvalidClientMetadata,
    application_settings,
    application_type,
    refusal_of_fields,
    registered_metadata,
)

PATH = "/oauth/v2/register"
_PROJECT, _CLIENT_ID = "project", "client_id"


class InvalidRegistrationToken(OAuthError):
    """The initial or registration access token is missing or wrong, or nobody may register here."""

    status = 401
    error = "invalid_token"
    headers = {"WWW-Authenticate": 'Bearer error="invalid_token"'}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__("the token is not valid here")


class TooManyRegistrations(OAuthError):
    """Too many requests from one network address, or as many clients as the project may have."""

    status = 429
    error = "temporarily_unavailable"


def handle(
    request: ProtocolRequest, context: Context, *, namespace: RecordNamespace, default_project_id: str
) -> ProtocolResponse:
    """Register a client, or serve the configuration of one. Raises OAuthError."""
    parameters = Parameters.parse(request.query)
    records = ClientRecords(context.services, namespace)
    try:
        if request.method == "POST":
            project_id = parameters.get(_PROJECT, default_project_id)
            return _register(request, context, records, project_id)
        return _CONFIGURATION[request.method](
            request, context, records, _find_client(request, parameters, context, records)
        )
    except Invalid as problem:
        raise refusal_of_fields(problem.fields) from None
    except NotFound:
        # Deleted meanwhile.
        raise InvalidRegistrationToken from None
    except DomainError as problem:
        raise InvalidClientMetadata(str(problem)) from None


def _register(request: ProtocolRequest, context: Context, records: ClientRecords, project_id: str) -> ProtocolResponse:
    services = context.services
    _count(services)
    text = _bearer_token(request)
    found = None if text is None else records.find_token(text)
    if text is not None and found is None:
        raise InvalidRegistrationToken
    if found is not None:
        project_id = found[0]
    project = _find_project(services, project_id)
    allows_all = project is not None and project.client_registration is ClientRegistration.OPEN
    if project is None or project.client_registration is ClientRegistration.OFF or not (found or allows_all):
        raise InvalidRegistrationToken
    metadata = _read_metadata(request)
    settings = application_settings(metadata, project, _usual_grant_types(services))
    command = RegisterApplication.decode({**settings, "type": application_type(metadata)})
    _read_sector_list(settings, services)
    application, secret = services.applications.register_with_secret(
        project.id, command, principal=Principal.OPERATOR, origin=ApplicationOrigin.REGISTRATION
    )
    if found is not None and not records.use_token(found[1]):
        raise InvalidRegistrationToken
    if not records.take_slot(project, application.id):
        raise TooManyRegistrations("this project has as many clients as it may have")
    return _response(application, records.add_client(application.id), context, secret=secret, status=201)


def _read(
    request: ProtocolRequest, context: Context, records: ClientRecords, application: Application
) -> ProtocolResponse:
    return _response(application, _bearer_token(request) or "", context)


def _replace(
    request: ProtocolRequest, context: Context, records: ClientRecords, application: Application
) -> ProtocolResponse:
    """All metadata: what is left out gets its default (RFC 7592 §2.2)."""
    metadata, services = _read_metadata(request), context.services
    if metadata.get(_CLIENT_ID) != application.id:
        raise InvalidClientMetadata("client_id must be that of the client")
    secret = metadata.get("client_secret")
    if secret is not None and not (
        isinstance(secret, str) and services.applications.authenticate(application.id, secret)
    ):
        raise InvalidClientMetadata("client_secret must be the current one")
    project = _find_project(services, application.project_id)
    if project is None or project.client_registration is ClientRegistration.OFF:
        raise InvalidClientMetadata("clients cannot change their metadata here any more")
    settings = application_settings(metadata, project, _usual_grant_types(services))
    if application_type(metadata) is not application.type:
        raise InvalidClientMetadata("application_type, redirect URIs and authentication method make another type")
    command = ChangeApplication.decode(settings)
    _read_sector_list(settings, services)
    token = records.renew_client_token(application.id, _bearer_token(request) or "")
    if token is None:
        raise InvalidRegistrationToken
    changed = services.applications.change(application.id, command, principal=Principal.OPERATOR)
    new_secret = None
    if changed.uses_client_secret and not services.applications.list_secrets(changed.id):
        _, new_secret = services.applications.add_secret(changed.id, principal=Principal.OPERATOR)
    return _response(changed, token, context, secret=new_secret)


def _delete(
    request: ProtocolRequest, context: Context, records: ClientRecords, application: Application
) -> ProtocolResponse:
    """Its tokens, consents and records are deleted with it."""
    context.services.applications.remove(application.id, principal=Principal.OPERATOR)
    return ProtocolResponse(204)


_CONFIGURATION: Mapping[str, Callable[[ProtocolRequest, Context, ClientRecords, Application], ProtocolResponse]] = {
    "GET": _read,
    "PUT": _replace,
    "DELETE": _delete,
}


def _find_client(
    request: ProtocolRequest, parameters: Parameters, context: Context, records: ClientRecords
) -> Application:
    """The client that the address names, with its registration access token. Raises InvalidRegistrationToken."""
    client_id, text = parameters.get(_CLIENT_ID, ""), _bearer_token(request) or ""
    if not records.is_client_token(client_id, text):
        raise InvalidRegistrationToken
    client = context.services.applications.find_client(client_id)
    if client is None or not client.is_active:
        raise InvalidRegistrationToken
    return client.application


def _find_project(services: Services, project_id: str) -> Project | None:
    with services.read_session() as storage:
        project = storage.projects.find(project_id)
        organization = None if project is None else storage.organizations.find(project.organization_id)
    is_active = project is not None and project.active and organization is not None and organization.active
    return project if is_active else None


def _usual_grant_types(services: Services) -> frozenset[str]:
    usual = services.capabilities.select_grant_types(lambda grant: grant.accepts_codes or grant.accepts_refresh_tokens)
    return frozenset(usual)


def _bearer_token(request: ProtocolRequest) -> str | None:
    scheme, _, text = (request.authorization or "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" and text.strip() else None


def _read_metadata(request: ProtocolRequest) -> dict[str, Any]:
    if request.content_type != "application/json":
        raise InvalidRequest("the body must be application/json")
    try:
        metadata = json.loads(request.body)
        # PostgreSQL stores no NUL, and unpaired surrogates have no encoding.
        json.dumps(metadata, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise InvalidClientMetadata("the body must be a JSON object") from None
    if not isinstance(metadata, dict):
        raise InvalidClientMetadata("the body must be a JSON object")
    return metadata


def _count(services: Services) -> None:
    try:
        services.attempts.count_request_before_slow_work()
    except DomainError:
        raise TooManyRegistrations("too many requests from this network address") from None


def _read_sector_list(settings: Mapping[str, Any], services: Services) -> None:
    """Fetch the list before the transaction begins, so that a slow host delays no other request."""
    if settings["sector_identifier_uri"]:
        services.read_current_document(settings["sector_identifier_uri"], "")


def _response(
    application: Application, token: str, context: Context, *, secret: str | None = None, status: int = 200
) -> ProtocolResponse:
    members = registered_metadata(application)
    if application.uses_client_secret:
        members["client_secret_expires_at"] = 0
    if secret is not None:
        members["client_secret"] = secret
    members["registration_access_token"] = token
    members["registration_client_uri"] = f"{context.settings.base_url}{PATH}?{_CLIENT_ID}={application.id}"
    return ProtocolResponse.from_json(json.dumps(members), status=status)


def build_endpoint(namespace: RecordNamespace, default_project_id: str) -> Endpoint:
    return Endpoint(
        name="register",
        path=PATH,
        host=EndpointHost.BASE,
        methods=("POST", "GET", "PUT", "DELETE"),
        discovery_member="registration_endpoint",
        writes=True,
        handle=partial(handle, namespace=namespace, default_project_id=default_project_id),
    )
