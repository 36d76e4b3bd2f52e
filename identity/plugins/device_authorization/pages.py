"""/device: enter the code of a device, confirm what it requests, and the outcome."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from pyramid.config import Configurator
from pyramid.response import Response

from identity.api.endpoints import OAuthError, request_context
from identity.api.entities import Application, ApplicationClient, Denied, Invalid, Organization
from identity.api.grants import CodeGrantType
from identity.api.pages import Form, FormPage, Page, ScopeDescriptions, gettext_lazy
from identity.api.plugins import cached_property
from identity.api.services import RecordNamespace
from identity.api.sign_in import SignedInAccount
from identity.plugins.device_authorization.device_requests import (
    DeviceRequest,
    DeviceRequestStore,
    format_user_code,
    normalize_user_code,
)
from identity.plugins.device_authorization.endpoint import PAGE_PATH, USER_CODE_PARAMETER

#: The kind of code whose guesses are counted.
_GUESS_KIND = "device"
_LONGEST_SENT_CODE = 20
_DECISION_FIELD, _ACCOUNT_FIELD, _SCOPE_FIELD = "decision", "account", "scope"


class _DevicePage(FormPage):
    def __init__(self, context: Any, request: Any, namespace: RecordNamespace) -> None:
        super().__init__(context, request)
        self._name_space = namespace

    @property
    def requests(self) -> DeviceRequestStore:
        """Of the current transaction."""
        return DeviceRequestStore(self.request.services, self._name_space)

    @property
    def account(self) -> SignedInAccount:
        account: SignedInAccount = self.request.signed_in_account
        return account

    def early_response(self) -> None:
        """Raises Denied for a manager who is signed in as a person: only the person may look at requests."""
        if self.account.session.is_impersonated:
            raise Denied("Someone who is signed in as another person cannot do this for that person.")

    def common_variables(self) -> Mapping[str, object]:
        return {"home": self.ACCOUNT_PATH, "required_organization": None}


class EnterCodePage(_DevicePage):
    """The code is only filled in by an address with it: looking it up takes the button, so that each guess counts."""

    template = "device/enter_code.html"
    fields = (USER_CODE_PARAMETER,)
    max_length = 100

    def initial_values(self) -> Mapping[str, str]:
        code = normalize_user_code(self.request.GET.get(USER_CODE_PARAMETER, "")[:_LONGEST_SENT_CODE])
        return {USER_CODE_PARAMETER: "" if code is None else format_user_code(code)}

    def submit(self, form: Form) -> Response:
        """Redirect to the request with this code. Raises Invalid; FormRedisplay after too many guesses."""
        code = normalize_user_code(form.text(USER_CODE_PARAMETER))
        if code is None:
            raise Invalid({USER_CODE_PARAMETER: gettext_lazy("Enter the eight letters that your device shows.")})
        subject = self.account.subject
        with self.rate_limited():
            reservation = self.request.run_once(
                "guess", lambda: self.request.services.attempts.reserve_code_guess(_GUESS_KIND, subject)
            )
        request_id = self.requests.find_id(code)
        if request_id is None:
            raise Invalid(
                {USER_CODE_PARAMETER: gettext_lazy("No device waits with this code. Check it, or start again there.")}
            )
        self.request.services.attempts.release(reservation)
        return self.redirect(f"{PAGE_PATH}/requests/{request_id}")


class ConfirmDevicePage(_DevicePage):
    """Approves or denies a request. It is displayed every time, whatever the person consented to before."""

    template = "device/confirm.html"
    fields = (_ACCOUNT_FIELD, _SCOPE_FIELD)

    @cached_property
    def device_request(self) -> DeviceRequest | None:
        return self.requests.find(self.request.matchdict["device_request"])

    @cached_property
    def client(self) -> ApplicationClient | None:
        """The requesting application, while it may request anything."""
        if self.device_request is None:
            return None
        client: ApplicationClient | None = self.request.services.applications.find_client(self.device_request.client_id)
        return client if client is not None and client.is_active else None

    def branding_owner(self) -> tuple[Organization | None, Application | None]:
        return (None, None) if self.client is None else (self.client.responsible_organization, self.client.application)

    def template_variables(self) -> Mapping[str, object] | Response:
        request, client = self.device_request, self.client
        if request is None or client is None:
            return self.redirect(f"{PAGE_PATH}/expired")
        variables = {
            "application": self.page_branding.application or client.application.name,
            "login_name": self.account.subject.login_name,
            "account": self.account.subject.user.id,
            "organization": client.organization_name,
            "user_code": format_user_code(request.user_code),
            "address": request.address,
            "requested_at": request.requested_at,
            "is_allowed": True,
        }
        try:
            summary = self._summarize(request, client)
        except OAuthError:
            return {**variables, "scope": "", "is_allowed": False}
        namespaces = self.request.registry.application.settings.urn_namespaces
        return {
            **variables,
            **ScopeDescriptions.requested_access(
                client, summary.consent, self.request.services, self.translator, namespaces
            ),
        }

    def submit(self, form: Form) -> Response:
        """Store the decision, unless another window was faster. An approval counts only for the account and the scopes
        that the page showed."""
        request, client, decision = self.device_request, self.client, form.text(_DECISION_FIELD)
        if request is None or client is None:
            return self.redirect(f"{PAGE_PATH}/expired")
        if decision == "switch":
            return self.redirect_to_sign_in(self.request.path)
        if decision == "deny":
            return self._deny(request, client)
        try:
            summary = self._summarize(request, client)
        except OAuthError:
            return self.redirect(self.request.path)
        subject, sent = self.account.subject, (form.text(_ACCOUNT_FIELD), form.text(_SCOPE_FIELD))
        if decision != "approve" or sent != (subject.user.id, summary.consent.scope_string):
            return self.redirect(self.request.path)
        if not self.requests.decide(request, deny=False):
            return self.redirect(f"{PAGE_PATH}/expired")
        services, context = self.request.services, request_context(self.request)
        if summary.needs_consent:
            services.consents.grant_consent(subject, client, summary.consent.values)
        ends_at = max(request.expires_at, context.now + context.settings.authorization_code_lifetime)
        self._record("device.approved", request, client, scope=list(summary.granted.values))
        CodeGrantType.store_code(summary, request.digest, ends_at, context, device_address=request.address)
        return self.redirect(f"{PAGE_PATH}/approved")

    def _summarize(self, request: DeviceRequest, client: ApplicationClient) -> Any:
        return CodeGrantType.summarize_request(
            self.account, client, request.scope, request_context(self.request), resources=request.resources
        )

    def _deny(self, request: DeviceRequest, client: ApplicationClient) -> Response:
        if not self.requests.decide(request, deny=True):
            return self.redirect(f"{PAGE_PATH}/expired")
        self._record("device.denied", request, client)
        return self.redirect(f"{PAGE_PATH}/denied")

    def _record(self, event: str, request: DeviceRequest, client: ApplicationClient, **about: object) -> None:
        subject, audit = self.account.subject, self.request.services.audit
        with audit.acting_as(subject.user.id, client_id=client.id, session_id=self.account.session.id):
            audit.record(
                event,
                kind="application",
                id=client.id,
                organization_id=subject.organization.id,
                detail={"user_id": subject.user.id, "device_address": request.address, **about},
            )


class DeviceOutcomePage(Page):
    """What became of a request."""

    template = "device/outcome.html"

    def template_variables(self) -> Mapping[str, object]:
        return {"outcome": self.request.matchdict["outcome"], "home": self.ACCOUNT_PATH}


def add_device_pages(config: Configurator, namespace: RecordNamespace) -> None:
    options = {"permission": Page.SIGNED_IN_PERMISSION, "authenticate": "session"}
    config.add_page("device", PAGE_PATH, partial(EnterCodePage, namespace=namespace), **options)
    config.add_page(
        "device.confirm",
        f"{PAGE_PATH}/requests/{{device_request}}",
        partial(ConfirmDevicePage, namespace=namespace),
        **options,
    )
    config.add_page("device.outcome", f"{PAGE_PATH}/{{outcome:approved|denied|expired}}", DeviceOutcomePage, **options)
