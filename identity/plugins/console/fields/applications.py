"""Fields of applications. Of types, methods and grants only those that we know have texts; plugins add others."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from identity.domain.applications import (
    PRIVATE_KEY_JWT,
    SELF_SIGNED_TLS_CLIENT_AUTH,
    TLS_CLIENT_AUTH,
    Application,
    ApplicationOrigin,
    ApplicationType,
    ConsentRule,
    SubjectType,
)
from identity.domain.messages import gettext_lazy as _
from identity.domain.security_profiles import KEY_AUTHENTICATION_METHODS, SecurityProfile
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.plugins.console.field_labels import (
    FieldLabel,
    Options,
    has_capability,
    has_discovery_member,
    labelled_fields,
)
from identity.plugins.console.fields.service_users import (
    ACCESS_TOKEN_TYPE_LABEL,
    RESPONSE_ALGORITHM_LABEL,
    algorithm_options,
)
from identity.services.capabilities import Capabilities


@dataclass(frozen=True)
class ApplicationTypeOption:
    """``icon`` is a name that the template macro knows."""

    label: str
    description: str
    icon: str


APPLICATION_TYPE_OPTIONS: Mapping[ApplicationType, ApplicationTypeOption] = {
    ApplicationType.WEB: ApplicationTypeOption(
        _("Web application"), _("Runs on a server, which can keep a secret. People sign in to it."), "apps"
    ),
    ApplicationType.NATIVE: ApplicationTypeOption(
        _("Native application"),
        _("Runs on a phone, a desktop or a command line. It has no secret; PKCE protects the sign-in."),
        "device",
    ),
    ApplicationType.BROWSER: ApplicationTypeOption(
        _("Browser application"),
        _("Runs as script in the browser (single-page application). It has no secret; PKCE protects the sign-in."),
        "overview",
    ),
    ApplicationType.API: ApplicationTypeOption(
        _("API"), _("Receives access tokens and has them checked here. People do not sign in to it."), "service"
    ),
}

RESPONSE_TYPE_DESCRIPTIONS: Mapping[str, str] = {
    "code": _("A code, which the application exchanges for tokens. Right for nearly every application."),
    "id_token": _("Only an ID token, through the browser. For applications that only need to know who the user is."),
    "id_token token": _("ID token and access token, through the browser. Only for old applications."),
    "code id_token": _("A code and an ID token, through the browser. Only for applications that expect both at once."),
    "code token": _("A code and an access token, through the browser. Only for old applications."),
    "code id_token token": _("A code and both tokens, through the browser. Only for old applications."),
}

GRANT_TYPE_DESCRIPTIONS: Mapping[str, str] = {
    "authorization_code": _("Exchanges the code of a sign-in for tokens."),
    "refresh_token": _("Gets new tokens without the person, if it requested the scope offline_access."),
    "client_credentials": _("Gets tokens for itself, without a user."),
    "urn:ietf:params:oauth:grant-type:device_code": _(
        "Signs people in on a television or command line, by a code that they enter on another device."
    ),
    "urn:ietf:params:oauth:grant-type:token-exchange": _(
        "Exchanges a token that it received for a narrower one of its own, to call another service for the user."
    ),
}

AUTHENTICATION_METHOD_DESCRIPTIONS: Mapping[str, str] = {
    "client_secret_basic": _("Client id and secret in the Authorization header."),
    "client_secret_post": _("Client id and secret in the form."),
    "private_key_jwt": _("Signs with its own key; the service only knows the public key."),
    "client_secret_jwt": _("Signs with its secret, which the service then stores sealed. Better: its own key."),
    "tls_client_auth": _("A certificate of an authority that the operators trust, with the name below (mutual TLS)."),
    "self_signed_tls_client_auth": _("Any certificate whose public key is registered below (mutual TLS)."),
    "none": _("Public client: no secret. PKCE protects its codes."),
}

SENDER_CONSTRAINT_DESCRIPTIONS: Mapping[str, str] = {
    "dpop": _("It signs each request with a key of its own (DPoP)."),
    "mutual_tls": _("It connects with the same certificate each time (mutual TLS)."),
}

ORIGIN_LABELS: Mapping[ApplicationOrigin, str] = {
    ApplicationOrigin.REGISTRATION: _("Registered itself"),
    ApplicationOrigin.METADATA_DOCUMENT: _("Known by its URL"),
}

REDIRECT_URI_EXAMPLES: Mapping[ApplicationType | None, str] = {
    ApplicationType.WEB: "https://app.example.com/callback",
    ApplicationType.NATIVE: "com.example.app:/callback",
    ApplicationType.BROWSER: "https://app.example.com/",
}

_ALGORITHM_LABELS: Mapping[SignatureAlgorithm, str] = {name: str(name) for name in SignatureAlgorithm}
_ACCESS = _("Grants and authentication")
_CERTIFICATE = _("Client certificate")
_TOKENS = _("Tokens")
_LOGOUT = _("Sign-out")
_REQUESTS = _("Authorization requests and responses")
_CONSENT_LABELS = {
    ConsentRule.WHEN_FOREIGN: _("People of other organizations"),
    ConsentRule.ALWAYS: _("Everyone"),
    ConsentRule.NEVER: _("Nobody"),
}


_HAS_PUSHED_REQUESTS = has_discovery_member("pushed_authorization_request_endpoint")
_HAS_SIGNED_REQUESTS = has_discovery_member("request_parameter_supported")
_HAS_SIGNED_RESPONSES = has_discovery_member("authorization_signing_alg_values_supported")
_HAS_CERTIFICATE_NAMES = has_capability(lambda capabilities: TLS_CLIENT_AUTH in capabilities.authentication_methods)


def _has_client_keys(page: Any) -> bool:
    """True if keys of applications verify anything: assertions, certificates or requests."""
    methods = page.services.capabilities.authentication_methods
    return PRIVATE_KEY_JWT in methods or SELF_SIGNED_TLS_CLIENT_AUTH in methods or _HAS_SIGNED_REQUESTS(page)


def _has_fapi(page: Any) -> bool:
    """True if an application can meet the FAPI 2.0 Security Profile here."""
    capabilities = page.services.capabilities
    has_key_method = any(name in KEY_AUTHENTICATION_METHODS for name in capabilities.authentication_methods)
    return has_key_method and bool(capabilities.sender_constraints) and _HAS_PUSHED_REQUESTS(page)


def _consent_options(page: Any) -> Sequence[Sequence[object]]:
    """The rule never is offered only to those who may choose it, or if it is set already."""
    return [
        (rule.value, page.translator.gettext(label))
        for rule, label in _CONSENT_LABELS.items()
        if rule is not ConsentRule.NEVER or page.can_set_consent_rule or rule is getattr(page.stored, "consent", None)
    ]


def capability_options(names: Callable[[Capabilities], Sequence[str]], descriptions: Mapping[str, str]) -> Options:
    """Capability names, verbatim, each with an explanation if there is one."""
    code = Markup("<code>{}</code>")
    return lambda page: [
        (name, code.format(name), page.translate(descriptions.get(name, "")))
        for name in names(page.services.capabilities)
    ]


def _sender_constraint_options(page: Any) -> Sequence[Sequence[object]]:
    """Nothing, then the names of what is offered, verbatim."""
    code = Markup("<code>{}</code>")
    names = page.services.capabilities.sender_constraints
    return [
        ("", page.translate(_("Not required")), ""),
        *((name, code.format(name), page.translate(SENDER_CONSTRAINT_DESCRIPTIONS.get(name, ""))) for name in names),
    ]


#: In the order of forms and pages; groups come last on forms. The first step of the registration chooses the type.
APPLICATION_FIELDS = labelled_fields(
    Application,
    {
        "name": FieldLabel(_("Name")),
        "response_types": FieldLabel(
            _("Response types"),
            section=_ACCESS,
            options=capability_options(lambda capabilities: capabilities.response_types, RESPONSE_TYPE_DESCRIPTIONS),
        ),
        "grant_types": FieldLabel(
            _("Grant types"),
            section=_ACCESS,
            options=capability_options(lambda capabilities: capabilities.grant_types, GRANT_TYPE_DESCRIPTIONS),
        ),
        "security_profile": FieldLabel(
            _("Security profile"),
            _(
                "FAPI 2.0 requires client authentication with a key, pushed requests, PKCE, bound tokens, and "
                "signatures by PS256, ES256 or EdDSA. Message Signing also requires signed requests and responses."
            ),
            section=_ACCESS,
            value_labels={
                None: _("None"),
                SecurityProfile.FAPI2: "FAPI 2.0 Security Profile",
                SecurityProfile.FAPI2_MESSAGE_SIGNING: "FAPI 2.0 Message Signing",
            },
            is_available=_has_fapi,
        ),
        "authentication_method": FieldLabel(
            _("Authentication method"),
            section=_ACCESS,
            options=capability_options(
                lambda capabilities: capabilities.authentication_methods, AUTHENTICATION_METHOD_DESCRIPTIONS
            ),
        ),
        "jwks_uri": FieldLabel(
            _("Address of the public keys"),
            _("A JWK set that the application publishes, to replace keys without a change here."),
            section=_ACCESS,
            is_available=_has_client_keys,
        ),
        "jwks": FieldLabel(
            _("Public keys"),
            _("A JWK set, if the application publishes none."),
            section=_ACCESS,
            is_available=_has_client_keys,
        ),
        "token_endpoint_auth_signing_alg": FieldLabel(
            _("Algorithm of its assertions"),
            _("Accept only this algorithm, such as {example}. Empty for any.", example="ES256"),
            section=_ACCESS,
            is_available=has_discovery_member("token_endpoint_auth_signing_alg_values_supported"),
        ),
        "tls_client_auth_subject_dn": FieldLabel(
            _("Subject of its certificate"),
            _(
                "Such as {example}. This prints it: {command}",
                example="CN=app,O=Example,C=CH",
                command="openssl x509 -in client.crt -noout -subject -nameopt RFC2253",
            ),
            section=_CERTIFICATE,
            is_available=_HAS_CERTIFICATE_NAMES,
        ),
        "tls_client_auth_san_dns": FieldLabel(
            _("DNS name of its certificate"), section=_CERTIFICATE, is_available=_HAS_CERTIFICATE_NAMES
        ),
        "tls_client_auth_san_uri": FieldLabel(
            _("URI of its certificate"), section=_CERTIFICATE, is_available=_HAS_CERTIFICATE_NAMES
        ),
        "tls_client_auth_san_ip": FieldLabel(
            _("IP address of its certificate"), section=_CERTIFICATE, is_available=_HAS_CERTIFICATE_NAMES
        ),
        "tls_client_auth_san_email": FieldLabel(
            _("Email address of its certificate"), section=_CERTIFICATE, is_available=_HAS_CERTIFICATE_NAMES
        ),
        "access_token_type": replace(ACCESS_TOKEN_TYPE_LABEL, section=_TOKENS),
        "redirect_uris": FieldLabel(_("Redirect URIs")),
        "post_logout_redirect_uris": FieldLabel(
            _("Post-logout redirect URIs"),
            _("Where people return after signing out, one address per line."),
            is_available=has_discovery_member("end_session_endpoint"),
        ),
        "backchannel_logout_uri": FieldLabel(
            _("Back-channel logout URI"),
            _("Where its server is notified when a session ends: it gets a signed logout token."),
            section=_LOGOUT,
            is_available=has_discovery_member("backchannel_logout_supported"),
        ),
        "frontchannel_logout_uri": FieldLabel(
            _("Front-channel logout URI"),
            _("What a browser loads in a frame after signing out. Some browsers withhold cookies there."),
            section=_LOGOUT,
            is_available=has_discovery_member("frontchannel_logout_supported"),
        ),
        "access_token_lifetime": FieldLabel(_("Lifetime of access tokens"), section=_TOKENS),
        "id_token_lifetime": FieldLabel(_("Lifetime of ID tokens"), section=_TOKENS),
        "id_token_signed_response_alg": replace(RESPONSE_ALGORITHM_LABEL, section=_TOKENS),
        "userinfo_signed_response_alg": FieldLabel(
            _("Algorithm of userinfo responses"),
            _("With one, the userinfo endpoint answers with a signed JWT."),
            section=_TOKENS,
            value_labels={None: _("Not signed"), **_ALGORITHM_LABELS},
            options=algorithm_options("userinfo_signed_response_alg", _("Not signed")),
        ),
        "introspection_signed_response_alg": FieldLabel(
            _("Algorithm of signed introspection responses"),
            section=_TOKENS,
            value_labels={None: _("That of its tokens"), **_ALGORITHM_LABELS},
            options=algorithm_options("introspection_signed_response_alg", _("That of its tokens")),
            is_available=has_discovery_member("introspection_signing_alg_values_supported"),
        ),
        "id_token_userinfo_assertion": FieldLabel(
            _("User Info inside ID Token"),
            _("Profile, email and other claims are in the ID token, even if an access token is issued."),
            section=_TOKENS,
        ),
        "access_token_userinfo_assertion": FieldLabel(
            _("User Info inside access token"),
            _("Profile, email and other claims are also in the access token, if it is a JWT."),
            section=_TOKENS,
        ),
        "assert_roles_in_access_token": FieldLabel(
            _("Roles in the access token"), _("Only a JWT can carry them."), section=_TOKENS
        ),
        "assert_roles_in_id_token": FieldLabel(_("Roles in the ID token"), section=_TOKENS),
        "subject_type": FieldLabel(
            _("Identifiers of people"),
            _(
                "With its own, no other application can recognize its users. Changing this changes the sub of all "
                "people: to the application they are strangers then."
            ),
            section=_TOKENS,
            value_labels={
                SubjectType.PUBLIC: _("The same for all applications (public)"),
                SubjectType.PAIRWISE: _("Its own (pairwise)"),
            },
        ),
        "sector_identifier_uri": FieldLabel(
            _("Sector identifier URI"),
            _(
                "A JSON list of all redirect URIs, if they have several hosts. Applications of one host share "
                "identifiers."
            ),
            section=_TOKENS,
        ),
        "consent": FieldLabel(
            _("Asked for consent"),
            _(
                "Who is asked for consent before the application receives their data. Organizations "
                "with a grant of the project do not count as other organizations."
            ),
            value_labels=_CONSENT_LABELS,
            options=_consent_options,
        ),
        "may_manage": FieldLabel(
            _("May manage"),
            _(
                "It gets tokens that let it act with its users' manager permissions, on their behalf. "
                "Users are asked for consent first."
            ),
            value_labels={True: _("Acts with its users' manager permissions, on their behalf."), False: ""},
        ),
        "development": FieldLabel(
            _("Development"),
            _("Redirect URIs may start with http:// on any host. Use this only while you build the application."),
            section=_ACCESS,
        ),
        "require_pushed_authorization_requests": FieldLabel(
            _("Require pushed requests"),
            _("Authorization requests are refused unless the application has pushed them from its server (PAR)."),
            section=_REQUESTS,
            is_available=_HAS_PUSHED_REQUESTS,
        ),
        "request_object_signing_alg": FieldLabel(
            _("Algorithm of its signed requests"),
            _("Accept only this algorithm, such as {example}. Empty for any.", example="ES256"),
            section=_REQUESTS,
            is_available=_HAS_SIGNED_REQUESTS,
        ),
        "request_uris": FieldLabel(
            _("Addresses of signed requests"),
            _("Where the service may fetch signed requests, if the operator allows that. One address per line."),
            section=_REQUESTS,
            is_available=has_discovery_member("request_uri_parameter_supported"),
        ),
        "require_signed_request_object": FieldLabel(
            _("Require signed requests"),
            _("Authorization requests are refused unless the application has signed them (JAR)."),
            section=_REQUESTS,
            is_available=_HAS_SIGNED_REQUESTS,
        ),
        "required_sender_constraint": FieldLabel(
            _("Require bound tokens"),
            _("The application has to prove a key when it requests tokens. Only it can use them then."),
            section=_TOKENS,
            value_labels={None: _("Not required")},
            options=_sender_constraint_options,
            is_available=has_capability(lambda capabilities: capabilities.sender_constraints),
        ),
        "identity_assertion_audiences": FieldLabel(
            _("Identity assertions"),
            _(
                "Authorization servers for which the application gets assertions (ID-JAG), one per line: the issuer,"
                " the client id there, and the addresses of APIs there. For example {example}",
                example="https://login.example.com CLIENT_ID https://api.example.com",
            ),
            section=_TOKENS,
            is_available=has_discovery_member("identity_chaining_requested_token_types_supported"),
        ),
        "authorization_signed_response_alg": FieldLabel(
            _("Algorithm of signed authorization responses"),
            section=_REQUESTS,
            value_labels={None: _("That of its tokens"), **_ALGORITHM_LABELS},
            options=algorithm_options("authorization_signed_response_alg", _("That of its tokens")),
            is_available=_HAS_SIGNED_RESPONSES,
        ),
        "require_encoded_response": FieldLabel(
            _("Require signed responses"),
            _("Authorization requests are refused unless they ask for a signed response (JARM)."),
            section=_REQUESTS,
            is_available=_HAS_SIGNED_RESPONSES,
        ),
    },
    hidden=("type",),
)
