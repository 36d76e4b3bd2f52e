"""Test plans of the OpenID Foundation's conformance suite for providers: the names of their modules, as published in
its source (classes ``…TestPlan`` and annotations ``@PublishTestModule``).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., Any])

#: The response types of the service, in the order of their plans: Basic, Implicit, Hybrid.
RESPONSE_TYPES = ("code", "id_token", "id_token token", "code id_token", "code token", "code id_token token")


@dataclass(frozen=True)
class Remark:
    """Why a module ends otherwise than with PASSED."""

    result: str
    reason: str


@dataclass(frozen=True)
class CertificationPlan:
    """A plan: its profile, its modules in order, and remarks by module. A module without a test has a remark.

    ``variant`` are the choices of the suite that the tests correspond to. ``clients`` are the members of the suite's
    configuration that describe a client, each with the members ``client``; ``application`` are settings of the service
    for these. ``case`` distinguishes plans of one name.
    """

    name: str
    profile: str
    modules: tuple[str, ...]
    remarks: Mapping[str, Remark] = field(default_factory=dict)
    variant: Mapping[str, str] = field(default_factory=lambda: _STATIC_CLIENT)
    clients: tuple[str, ...] = ("client", "client_secret_post", "client2")
    client: Mapping[str, str] = field(default_factory=lambda: _SECRET)
    application: Mapping[str, str] = field(default_factory=dict)
    case: str = ""

    @property
    def folder(self) -> str:
        """The name of its folder, which is unique."""
        return f"{self.name}-{self.case}" if self.case else self.name


@dataclass(frozen=True)
class Flow:
    """One way through the authorization endpoint that plans of OpenID Connect Core run their modules with."""

    response_type: str
    response_mode: str | None

    def __str__(self) -> str:
        return f"{self.response_type.replace(' ', '+')}-{self.response_mode or 'default'}"

    @property
    def values(self) -> frozenset[str]:
        return frozenset(self.response_type.split())

    @property
    def parameters(self) -> dict[str, str | None]:
        return {"response_type": self.response_type, "response_mode": self.response_mode}

    @property
    def folder(self) -> str:
        """The folder of its plan."""
        family = "basic" if self.values == {"code"} else "hybrid" if "code" in self.values else "implicit"
        return f"oidcc-{'formpost-' if self.response_mode else ''}{family}-certification-test-plan"


FLOWS = tuple(Flow(response_type, mode) for response_type in RESPONSE_TYPES for mode in (None, "form_post"))


def flows(accepts: Callable[[frozenset[str]], bool] = bool) -> Callable[[Test], Test]:
    """Run a test in each flow whose response type has values that fit: quickly in the default response mode only."""
    chosen = [flow for flow in FLOWS if accepts(flow.values)]
    cases = pytest.mark.parametrize("flow", chosen, ids=str)
    sample = pytest.mark.sampled(len(chosen) // 2)
    return lambda test: sample(cases(test))


@dataclass(frozen=True)
class FapiVariant:
    """A variant of the plans for FAPI 2.0: client authentication, binding of tokens, signed requests and responses."""

    authentication: str
    binding: str
    is_signed: bool = False
    is_encoded: bool = False

    def __str__(self) -> str:
        signed = f"-{'jar' if self.is_signed else ''}{'-jarm' if self.is_encoded else ''}" if self.is_signed else ""
        return f"{self.authentication}-{self.binding}{signed}"

    @property
    def method(self) -> str:
        """The registered name of the client authentication method."""
        return "tls_client_auth" if self.authentication == "mtls" else self.authentication

    @property
    def profile(self) -> str:
        """The security profile of the application. It requires signed responses too, or none."""
        return "fapi2_message_signing" if self.is_encoded else "fapi2"

    @property
    def plan(self) -> "CertificationPlan":
        name = "message-signing" if self.is_signed else "security-profile"
        prefix = "fapi2-security-profile-final-"
        modules = (
            *_FAPI2,
            *(_FAPI2_DPOP if self.binding == "dpop" else ()),
            *(_FAPI2_ASSERTIONS if self.authentication == "private_key_jwt" else ()),
            *(_FAPI2_SIGNED if self.is_signed else ()),
        )
        variant = {
            "fapi_profile": "plain_fapi",
            "openid": "openid_connect",
            "client_auth_type": self.authentication,
            "sender_constrain": self.binding,
            "fapi_request_method": "signed_non_repudiation" if self.is_signed else "unsigned",
            "fapi_response_mode": "jarm" if self.is_encoded else "plain_response",
        }
        title = "FAPI 2.0 Message Signing" if self.is_signed else "FAPI 2.0 Security Profile"
        return CertificationPlan(
            f"fapi2-{name}-final-test-plan",
            f"{title}, {self}",
            tuple(prefix + module for module in modules),
            {prefix + module: remark for module, remark in _FAPI2_REMARKS.items()},
            variant if self.is_signed else {key: variant[key] for key in list(variant)[:4]},
            ("client", "client2", *(("mtls", "mtls2") if "mtls" in (self.authentication, self.binding) else ())),
            {"client_id": "CLIENT_ID", "scope": "openid", "jwks": "PRIVATE_KEYS"},
            {
                "security_profile": f"`{self.profile}`",
                "authentication_method": f"`{self.method}`",
                "id_token_signed_response_alg": "`ES256`, and `identity.signing_algorithms = RS256 ES256`",
                **({"require_signed_request_object": "on"} if self.is_signed and not self.is_encoded else {}),
            },
            str(self),
        )

    @property
    def folder(self) -> str:
        """The folder of its plan."""
        return self.plan.folder


FAPI_VARIANTS = (
    FapiVariant("private_key_jwt", "dpop"),
    FapiVariant("private_key_jwt", "mtls"),
    FapiVariant("mtls", "dpop"),
    FapiVariant("mtls", "mtls"),
    FapiVariant("private_key_jwt", "dpop", is_signed=True, is_encoded=True),
    FapiVariant("private_key_jwt", "dpop", is_signed=True),
)


def fapi_variants(accepts: Callable[[FapiVariant], bool] = lambda variant: True) -> Callable[[Test], Test]:
    """Run a test in each variant that fits: quickly in the first one only."""
    cases = pytest.mark.parametrize("flow", [variant for variant in FAPI_VARIANTS if accepts(variant)], ids=str)
    sample = pytest.mark.sampled(1)
    return lambda test: sample(cases(test))


_STATIC_CLIENT = {"server_metadata": "discovery", "client_registration": "static_client"}
_SECRET = {"client_id": "CLIENT_ID", "client_secret": "SECRET"}

_CORE = (
    "oidcc-server",
    "oidcc-response-type-missing",
    "oidcc-idtoken-signature",
    "oidcc-scope-profile",
    "oidcc-scope-email",
    "oidcc-scope-address",
    "oidcc-scope-phone",
    "oidcc-scope-all",
    "oidcc-ensure-other-scope-order-succeeds",
    "oidcc-display-page",
    "oidcc-display-popup",
    "oidcc-prompt-login",
    "oidcc-prompt-none-not-logged-in",
    "oidcc-prompt-none-logged-in",
    "oidcc-max-age-1",
    "oidcc-max-age-10000",
    "oidcc-ensure-request-with-unknown-parameter-succeeds",
    "oidcc-id-token-hint",
    "oidcc-login-hint",
    "oidcc-ui-locales",
    "oidcc-claims-locales",
    "oidcc-ensure-request-with-acr-values-succeeds",
    "oidcc-ensure-registered-redirect-uri",
    "oidcc-request-uri-unsigned-supported-correctly-or-rejected-as-unsupported",
    "oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported",
    "oidcc-ensure-request-object-with-redirect-uri",
    "oidcc-claims-essential",
    "oidcc-userinfo-get",
    "oidcc-userinfo-post-header",
    "oidcc-userinfo-post-body",
)
_WITH_CODE = (
    "oidcc-codereuse",
    "oidcc-codereuse-30seconds",
    "oidcc-server-client-secret-post",
    "oidcc-refresh-token",
    "oidcc-ensure-request-with-valid-pkce-succeeds",
    "oidcc-ensure-request-without-nonce-succeeds-for-code-flow",
)
_NONCE = "oidcc-ensure-request-without-nonce-fails"
_BASIC = (*_CORE, *_WITH_CODE, "oidcc-idtoken-unsigned", "oidcc-ensure-post-request-succeeds")
_IMPLICIT = (*_CORE, _NONCE)
_HYBRID = (*_CORE, *_WITH_CODE, _NONCE)

#: Without the modules that the variants leave out: those of ecosystems (Australia, Brazil, Chile, Saudi Arabia, the
#: United Arab Emirates) and of Grant Management.
_FAPI2 = (
    "discovery-end-point-verification",
    "happy-flow",
    "user-rejects-authentication",
    "ensure-authorization-request-without-state-success",
    "ensure-authorization-request-without-nonce-success",
    "ensure-authorization-request-with-64-char-nonce-success",
    "ensure-other-scope-order-succeeds",
    "test-claims-parameter-identity-claims",
    "access-token-type-header-case-sensitivity",
    "ensure-different-nonce-inside-and-outside-request-object",
    "ensure-different-state-inside-and-outside-request-object",
    "ensure-authorization-request-with-long-nonce",
    "ensure-authorization-request-with-long-state",
    "state-only-outside-request-object-not-used",
    "ensure-request-object-without-redirect-uri-fails",
    "ensure-registered-redirect-uri",
    "plain-fapi-tolerate-unregistered-redirect-uri",
    "ensure-unsigned-authorization-request-without-using-par-fails",
    "ensure-redirect-uri-in-authorization-request",
    "ensure-response-type-code-idtoken-fails",
    "ensure-response-type-token-fails",
    "ensure-client-id-in-token-endpoint",
    "ensure-holder-of-key-required",
    "ensure-authorization-code-is-bound-to-client",
    "attempt-reuse-authorization-code-after-one-second",
    "ensure-token-endpoint-fails-with-expired-auth-code",
    "refresh-token",
    "par-ensure-reused-request-uri-prior-to-auth-completion-succeeds",
    "par-attempt-reuse-request_uri",
    "par-attempt-to-use-expired-request_uri",
    "par-attempt-to-use-request_uri-for-different-client",
    "par-authorization-request-containing-request_uri-form-param",
    "par-attempt-invalid-http-method",
    "par-ensure-pkce-required",
    "ensure-pkce-code-verifier-required",
    "incorrect-pkce-code-verifier-rejected",
    "par-plain-pkce-rejected",
    "par-without-duplicate-parameters",
)
#: With sender_constrain=dpop.
_FAPI2_DPOP = (
    "check-dpop-proof-nbf-exp",
    "ensure-dpopproof-with-iat-10seconds-before-succeeds",
    "ensure-dpopproof-with-iat-10seconds-after-succeeds",
    "ensure-mismatched-dpop-jkt-fails",
    "ensure-token-endpoint-fails-with-mismatched-dpop-proof-jkt",
    "ensure-token-endpoint-fails-with-mismatched-dpop-jkt",
    "ensure-dpopproof-at-par-endpoint-binding-success",
    "ensure-dpop-auth-code-binding-success",
    "dpop-negative-tests",
)
#: With client_auth_type=private_key_jwt.
_FAPI2_ASSERTIONS = (
    "ensure-signed-client-assertion-with-RS256-fails",
    "ensure-client-assertion-in-token-endpoint",
    "ensure-client-assertion-with-exp-is-5-minutes-in-past-fails",
    "ensure-client-assertion-with-wrong-aud-fails",
    "ensure-client-assertion-with-no-sub-fails",
    "ensure-invalid-client-assertions-fail",
    "par-ensure-jwt-client-assertions-nbf-8-seconds-in-the-future-is-accepted",
    "par-ensure-jwt-client-assertions-nbf-over-60-seconds-in-the-future-fails",
    "par-test-array-as-audience-fails",
    "par-test-par-endpoint-url-as-audience-fails",
    "par-test-token-endpoint-url-as-audience-fails",
)
#: With fapi_request_method=signed_non_repudiation.
_FAPI2_SIGNED = (
    "ensure-request-object-with-multiple-aud-succeeds",
    "ensure-request-object-with-nbf-8-seconds-in-the-future-is-accepted",
    "ensure-request-object-without-exp-fails",
    "ensure-request-object-without-nbf-fails",
    "ensure-expired-request-object-fails",
    "ensure-request-object-with-bad-aud-fails",
    "ensure-request-object-with-exp-over-60-fails",
    "ensure-request-object-with-nbf-over-60-fails",
    "ensure-signed-request-object-with-RS256-fails",
    "ensure-request-object-signature-algorithm-is-not-none",
    "ensure-request-object-with-invalid-signature-fails",
    "ensure-matching-key-in-authorization-request",
    "ensure-unsigned-request-at-par-endpoint-fails",
    "par-authorization-request-containing-request_uri",
)
_FAPI2_REMARKS = {
    "par-ensure-reused-request-uri-prior-to-auth-completion-succeeds": Remark(
        "WARNING", "the first visit uses up request_uri; that a visit before the sign-in does not is a recommendation"
    ),
}

_NO_UNSIGNED_REQUESTS = "the service refuses requests with unsigned parameters, as the module allows"
_CORE_REMARKS = {
    "oidcc-idtoken-unsigned": Remark("SKIPPED", "the service issues no unsigned ID tokens; the test shows that"),
    "oidcc-ensure-request-object-with-redirect-uri": Remark("SKIPPED", _NO_UNSIGNED_REQUESTS),
}


def _core_plan(mode: str, family: str, modules: tuple[str, ...]) -> CertificationPlan:
    name = f"oidcc-{mode}{family}-certification-test-plan"
    return CertificationPlan(
        name,
        f"Form Post OP, {family.title()}" if mode else f"{family.title()} OP",
        modules,
        {module: remark for module, remark in _CORE_REMARKS.items() if module in modules},
        application={
            "authentication_method": "`client_secret_basic`; `client_secret_post` for the client of that name",
            "response_types": ", ".join(f"`{flow.response_type}`" for flow in FLOWS if flow.folder == name),
        },
    )


PLANS = (
    CertificationPlan(
        "oidcc-config-certification-test-plan",
        "Config OP",
        ("oidcc-discovery-endpoint-verification",),
        variant={},
        clients=(),
    ),
    *(
        _core_plan(mode, family, modules)
        for mode in ("", "formpost-")
        for family, modules in (("basic", _BASIC), ("implicit", _IMPLICIT), ("hybrid", _HYBRID))
    ),
    CertificationPlan(
        "oidcc-rp-initiated-logout-certification-test-plan",
        "RP-Initiated Logout OP",
        (
            "oidcc-rp-initiated-logout-discovery-endpoint-verification",
            "oidcc-rp-initiated-logout",
            "oidcc-rp-initiated-logout-bad-post-logout-redirect-uri",
            "oidcc-rp-initiated-logout-modified-id-token-hint",
            "oidcc-rp-initiated-logout-no-id-token-hint",
            "oidcc-rp-initiated-logout-no-params",
            "oidcc-rp-initiated-logout-no-post-logout-redirect-uri",
            "oidcc-rp-initiated-logout-no-state",
            "oidcc-rp-initiated-logout-only-state",
            "oidcc-rp-initiated-logout-query-added-to-post-logout-redirect-uri",
            "oidcc-rp-initiated-logout-bad-id-token-hint",
        ),
    ),
    CertificationPlan(
        "oidcc-backchannel-rp-initiated-logout-certification-test-plan",
        "Back-Channel OP",
        ("oidcc-backchannel-logout-discovery-endpoint-verification", "oidcc-backchannel-rp-initiated-logout"),
        application={"backchannel_logout_uri": "for the suite, its address with `/test/a/identity/backchannel_logout`"},
    ),
    CertificationPlan(
        "oidcc-frontchannel-rp-initiated-logout-certification-test-plan",
        "Front-Channel OP",
        ("oidcc-frontchannel-logout-discovery-endpoint-verification", "oidcc-frontchannel-rp-initiated-logout"),
        application={
            "frontchannel_logout_uri": "for the suite, its address with `/test/a/identity/frontchannel_logout`"
        },
    ),
    CertificationPlan(
        "oidcc-dynamic-certification-test-plan",
        "Dynamic OP",
        (
            "oidcc-idtoken-rs256",
            "oidcc-idtoken-unsigned",
            "oidcc-userinfo-rs256",
            "oidcc-ensure-redirect-uri-in-authorization-request",
            "oidcc-redirect-uri-query-OK",
            "oidcc-redirect-uri-query-mismatch",
            "oidcc-redirect-uri-query-added",
            "oidcc-redirect-uri-regfrag",
            "oidcc-discovery-endpoint-verification",
            "oidcc-server",
            "oidcc-registration-logo-uri",
            "oidcc-registration-policy-uri",
            "oidcc-registration-tos-uri",
            "oidcc-registration-jwks-uri",
            "oidcc-registration-sector-uri",
            "oidcc-registration-sector-bad",
            "oidcc-server-rotate-keys",
            "oidcc-refresh-token-rp-key-rotation",
            "oidcc-request-uri-unsigned",
            "oidcc-request-uri-signed-rs256",
            "oidcc-ensure-request-object-with-redirect-uri",
            "oidcc-refresh-token",
            "oidcc-ensure-client-assertion-with-iss-aud-succeeds",
        ),
        {
            "oidcc-idtoken-unsigned": _CORE_REMARKS["oidcc-idtoken-unsigned"],
            "oidcc-ensure-request-object-with-redirect-uri": Remark("SKIPPED", _NO_UNSIGNED_REQUESTS),
            "oidcc-request-uri-unsigned": Remark("SKIPPED", _NO_UNSIGNED_REQUESTS),
            **dict.fromkeys(
                ("oidcc-registration-logo-uri", "oidcc-registration-policy-uri", "oidcc-registration-tos-uri"),
                Remark("WARNING", "the address is accepted and not displayed"),
            ),
        },
        {"response_type": "code"},
        ("client", "client2"),
        {"client_name": "CLIENT_NAME"},
        {
            "client_registration": "`open`, of the project",
            "registration_redirect_hosts": "the host of the clients, of the project",
            "identity.plugin.dynamic_registration.default_project_id": "for the suite, the project",
        },
    ),
    *(variant.plan for variant in FAPI_VARIANTS),
)


def plans_with(module: str, flow: Flow | FapiVariant | None) -> list[CertificationPlan]:
    """The plans in which a test of this module in this flow counts."""
    return [plan for plan in PLANS if module in plan.modules and (flow is None or flow.folder == plan.folder)]
