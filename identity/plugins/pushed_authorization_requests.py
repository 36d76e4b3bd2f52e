"""Pushed authorization requests (RFC 9126): a client sends its parameters from its server, and a reference to them
through the browser.

A pushed request::

    POST /oauth/v2/par
    Authorization: Basic …
    Content-Type: application/x-www-form-urlencoded

    response_type=code&client_id=…&redirect_uri=https%3A%2F%2Fapp.example%2Fcb&scope=openid&…
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from identity.api.crypto import new_token
from identity.api.endpoints import (
    AuthorizationRequestSource,
    ClientAuthenticationMethod,
    Context,
    Endpoint,
    EndpointHost,
    InvalidRequest,
    InvalidRequestUri,
    LoadedRequest,
    Parameters,
    ProtocolRequest,
    ProtocolResponse,
    RequestForm,
    RequestTooLarge,
    UnauthorizedClient,
    load_pushed_request,
)
from identity.api.entities import ApplicationClient
from identity.api.plugins import duration, hookimpl
from identity.api.services import RecordNamespace

_PREFIX = "urn:ietf:params:oauth:request_uri:"
_KIND = "request"
_LONGEST = 32 * 1024
#: Credentials of the client belong to the pushed request only.
_CREDENTIALS = frozenset({*ClientAuthenticationMethod.CREDENTIAL_PARAMETERS, "client_assertion_type"})


class PushedRequestSource(AuthorizationRequestSource):
    """A ``request_uri`` that the service issued; each can be used once."""

    name = "pushed"
    parameter = "request_uri"
    discovery_members: ClassVar[Mapping[str, object]] = {"require_pushed_authorization_requests": False}

    def __init__(self, plugin: "PushedAuthorizationRequestsPlugin") -> None:
        self._plugin = plugin

    def accepts(self, value: str, client: ApplicationClient) -> bool:
        return value.startswith(_PREFIX)

    def load(self, value: str, client: ApplicationClient, context: Context) -> LoadedRequest:
        """The client's pushed parameters. Another client's attempt does not use them up. Raises InvalidRequestUri."""
        records = context.services.record_service(self._plugin.record_namespace)
        record = records.find(_KIND, value)
        if record is None or record.application_id != client.id or records.consume(_KIND, value) is None:
            raise InvalidRequestUri("request_uri is unknown, was used or has expired: start again at the application")
        return LoadedRequest(Parameters(record.value["parameters"]), frozenset(map(RequestForm, record.value["forms"])))


class PushedAuthorizationRequestsPlugin:
    """Pushed authorization requests (RFC 9126)."""

    hookspecs = 1

    @dataclass(frozen=True)
    class Settings:
        """How long a pushed request can be used."""

        lifetime: timedelta = duration(
            "How long the browser has to arrive with a pushed request.", "60s", at_least="5s", at_most="9m"
        )

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._namespace: RecordNamespace | None = None

    @property
    def record_namespace(self) -> RecordNamespace:
        if self._namespace is None:
            raise ValueError("the plugin has no namespace")
        return self._namespace

    @hookimpl
    def identity_record_namespace(self, namespace: RecordNamespace) -> None:
        """Pushed requests that were not used yet."""
        self._namespace = namespace

    @hookimpl
    def identity_authorization_request_sources(self) -> Iterable[AuthorizationRequestSource]:
        """The references that the endpoint returns."""
        return [PushedRequestSource(self)]

    @hookimpl
    def identity_endpoints(self) -> Iterable[Endpoint]:
        """The pushed authorization request endpoint."""
        return [
            Endpoint(
                name="pushed_authorization_request",
                path="/oauth/v2/par",
                host=EndpointHost.BASE,
                methods=("POST",),
                discovery_member="pushed_authorization_request_endpoint",
                writes=True,
                authenticates_clients=True,
                handle=self.handle,
            )
        ]

    def handle(self, request: ProtocolRequest, context: Context) -> ProtocolResponse:
        """Validate and store an authorization request: 201 with ``request_uri`` and ``expires_in`` in seconds (RFC 9126
        §2.2). Raises OAuthError."""
        Parameters.refuse_secrets(request.query)
        form = request.parse_lenient_form()
        form.refuse_repeated(allowed=("resource",))
        client = context.provider.authenticate(request, form, context)
        if not isinstance(client, ApplicationClient):
            raise UnauthorizedClient("service users cannot sign people in")
        if "request_uri" in form:
            raise InvalidRequest("request_uri cannot be pushed")
        sent = {name: value for name, value in form.items() if name not in _CREDENTIALS}
        loaded = load_pushed_request(Parameters({**sent, "client_id": client.id}, form.repeated), request, context)
        value = {"parameters": dict(loaded.parameters), "forms": sorted(loaded.forms)}
        if len(json.dumps(value)) > _LONGEST:
            raise RequestTooLarge(f"the request is larger than {_LONGEST} bytes")
        reference = _PREFIX + new_token()
        context.services.record_service(self.record_namespace).add(
            _KIND,
            reference,
            value,
            application_id=client.id,
            expires_at=context.now + self.settings.lifetime,
            # Hints and claims in it can be about people.
            seal=True,
        )
        answer = {"request_uri": reference, "expires_in": int(self.settings.lifetime.total_seconds())}
        return ProtocolResponse.from_json(json.dumps(answer), status=201)
