"""The device grant (RFC 8628): a device without a browser shows a code, which its user types on another one."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from pyramid.config import Configurator
from pyramid.response import Response

from identity.api.crypto import new_token
from identity.api.endpoints import (
    Context,
    Endpoint,
    EndpointHost,
    InvalidClient,
    InvalidGrant,
    OAuthError,
    ProtocolRequest,
    ProtocolResponse,
)
from identity.api.entities import ApplicationClient, Invalid
from identity.api.grants import (
    AccessToken,
    Authorization,
    ClientRequirement,
    GrantType,
    RefreshToken,
    Scope,
    SingleUseCredential,
    TokenRequest,
)
from identity.api.pages import Form, FormPage, Page, SignedInPage, gettext_lazy
from identity.api.plugins import duration, hookimpl
from identity.api.services import Record, RecordNamespace, RecordService

GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code"
PAGE_PATH = "/device"
#: Kinds of records: requests by device code, and device codes by what users type.
DEVICE, USER_CODE = "device", "user_code"


class AuthorizationPending(OAuthError):
    """The user has not typed the code yet: the device polls again."""

    error = "authorization_pending"


@dataclass(frozen=True)
class DeviceCode(SingleUseCredential):
    """An approved device code, consumed in the transaction that stores its access token."""

    records: RecordService
    text: str

    def consume(self, access: AccessToken | None, refresh: RefreshToken | None, context: Context) -> None:
        if access is None or self.records.consume(DEVICE, self.text) is None:
            raise InvalidGrant("device_code was used before")
        context.services.tokens.store_access_token(access)


class DeviceEndpoint:
    """Answers a device with the code that it shows."""

    def __init__(self, namespace: RecordNamespace, lifetime: timedelta) -> None:
        self._namespace, self._lifetime = namespace, lifetime

    def handle(self, request: ProtocolRequest, context: Context) -> ProtocolResponse:
        parameters = request.parse_form()
        client = context.provider.authenticate(request, parameters, context)
        if not isinstance(client, ApplicationClient):
            raise InvalidClient("the device grant is for applications")
        device_code, user_code = new_token(), new_token()[:8].upper()
        records, ends_at = context.services.record_service(self._namespace), context.now + self._lifetime
        device_request = {"client_id": client.id, "scope": parameters.get("scope", ""), "user_id": None}
        records.add(DEVICE, device_code, device_request, application_id=client.application.id, expires_at=ends_at)
        records.add(USER_CODE, user_code, {"device_code": device_code}, expires_at=ends_at, seal=True)
        answer = {
            "device_code": device_code,
            "user_code": user_code,
            "verification_uri": context.settings.login_url + PAGE_PATH,
            "expires_in": int(self._lifetime.total_seconds()),
        }
        return ProtocolResponse(200, json.dumps(answer).encode(), "application/json", {"Cache-Control": "no-store"})


class DeviceGrant(GrantType):
    """Exchanges the device code, once the user has typed theirs."""

    grant_type = GRANT_TYPE
    parameters = frozenset({"device_code"})
    client_requirement = ClientRequirement.REQUIRED

    def __init__(self, namespace: RecordNamespace) -> None:
        self._namespace = namespace

    def authorize(self, request: TokenRequest, context: Context) -> Authorization:
        device_code = request.parameters.require_value("device_code")
        records = context.services.record_service(self._namespace)
        record = records.find(DEVICE, device_code)
        if record is None or request.client is None or record.value["client_id"] != request.client.id:
            raise InvalidGrant("device_code is unknown, used or expired")
        if record.value["user_id"] is None:
            raise AuthorizationPending("the user has not typed the code yet")
        subject = context.services.storage.users.find_subject(record.value["user_id"])
        if subject is None or not subject.is_active:
            raise InvalidGrant("the user is gone")
        scope = request.parameters.get_space_delimited("scope") or tuple(record.value["scope"].split())
        Scope.require_openid(scope)
        return Authorization(
            subject=subject,
            client=request.client,
            client_id=request.client.id,
            requested_scopes=scope,
            authenticated_at=context.now,
            single_use_credential=DeviceCode(records, device_code),
        )


class DevicePage(SignedInPage, FormPage):
    """Where a signed-in user types the code."""

    template = "device/code.html"
    fields = ("code",)
    #: Set at start.
    namespace: ClassVar[RecordNamespace]

    def template_variables(self) -> Mapping[str, object]:
        return {"done": "done" in self.request.GET}

    def submit(self, form: Form) -> Response:
        with self.rate_limited():
            self.request.run_once("device code", lambda: self.request.services.attempts.count_request())
        records: RecordService = self.request.services.record_service(self.namespace)
        typed = records.consume(USER_CODE, form.text("code").strip().upper())
        device = None if typed is None else records.find(DEVICE, typed.value["device_code"])
        if device is None:
            raise Invalid({"code": gettext_lazy("This code is unknown or expired. Look at the device again.")})
        self._approve(records, device)
        return self.redirect(f"{PAGE_PATH}?done=yes")

    def _approve(self, records: RecordService, device: Record) -> None:
        records.replace(device, {**device.value, "user_id": self.subject.user.id})


class DevicePlugin:
    """Offers the device grant, its endpoint and its page."""

    hookspecs = 1

    @dataclass(frozen=True)
    class Settings:
        """The keys ``identity.plugin.device.*`` of the ini file."""

        lifetime: timedelta = duration("How long a code works.", "10m")

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_record_namespace(self, namespace: RecordNamespace) -> None:
        self.namespace = namespace

    @hookimpl
    def identity_endpoints(self) -> Iterable[Endpoint]:
        return [
            Endpoint(
                name="device_authorization",
                path="/oauth/v2/device_authorization",
                host=EndpointHost.BASE,
                methods=("POST",),
                discovery_member="device_authorization_endpoint",
                writes=True,
                authenticates_clients=True,
                handle=DeviceEndpoint(self.namespace, self.settings.lifetime).handle,
            )
        ]

    @hookimpl
    def identity_grant_types(self) -> Iterable[GrantType]:
        return [DeviceGrant(self.namespace)]

    @hookimpl
    def identity_configure(self, config: Configurator) -> None:
        config.include("identity.pages")
        config.add_page_templates("tests.house.sample_plugins:templates")
        DevicePage.namespace = self.namespace
        config.add_page("device", PAGE_PATH, DevicePage, permission=Page.SIGNED_IN_PERMISSION, authenticate="session")
