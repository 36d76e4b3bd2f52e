"""Fields of applications. Of types, methods and grants only those that we know have texts; plugins add others."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from identity.domain.applications import Application, ApplicationType, ConsentRule
from identity.domain.messages import gettext_lazy
from identity.plugins.console.field_labels import FieldLabel, Options, labelled_fields
from identity.plugins.console.fields.service_users import ACCESS_TOKEN_TYPE_LABEL
from identity.services.capabilities import Capabilities


@dataclass(frozen=True)
class ApplicationTypeOption:
    """``icon`` is a name that the template macro knows."""

    label: str
    description: str
    icon: str


APPLICATION_TYPE_OPTIONS: Mapping[ApplicationType, ApplicationTypeOption] = {
    ApplicationType.WEB: ApplicationTypeOption(
        gettext_lazy("Web application"),
        gettext_lazy("Runs on a server, which can keep a secret. People sign in to it."),
        "apps",
    ),
    ApplicationType.NATIVE: ApplicationTypeOption(
        gettext_lazy("Native application"),
        gettext_lazy("Runs on a phone, a desktop or a command line. It has no secret; PKCE protects the sign-in."),
        "device",
    ),
    ApplicationType.BROWSER: ApplicationTypeOption(
        gettext_lazy("Browser application"),
        gettext_lazy(
            "Runs as script in the browser (single-page application). It has no secret; PKCE protects the sign-in."
        ),
        "overview",
    ),
    ApplicationType.API: ApplicationTypeOption(
        gettext_lazy("API"),
        gettext_lazy("Receives access tokens and has them checked here. People do not sign in to it."),
        "service",
    ),
}

RESPONSE_TYPE_DESCRIPTIONS: Mapping[str, str] = {
    "code": gettext_lazy("A code, which the application exchanges for tokens. Right for nearly every application."),
    "id_token": gettext_lazy(
        "Only an ID token, through the browser. For applications that only need to know who the user is."
    ),
    "id_token token": gettext_lazy("ID token and access token, through the browser. Only for old applications."),
}

GRANT_TYPE_DESCRIPTIONS: Mapping[str, str] = {
    "authorization_code": gettext_lazy("Exchanges the code of a sign-in for tokens."),
    "refresh_token": gettext_lazy("Gets new tokens without the person, if it requested the scope offline_access."),
    "client_credentials": gettext_lazy("Gets tokens for itself, without a user."),
}

AUTHENTICATION_METHOD_DESCRIPTIONS: Mapping[str, str] = {
    "client_secret_basic": gettext_lazy("Client id and secret in the Authorization header."),
    "client_secret_post": gettext_lazy("Client id and secret in the form."),
    "none": gettext_lazy("Public client: no secret. PKCE protects its codes."),
}

REDIRECT_URI_EXAMPLES: Mapping[ApplicationType | None, str] = {
    ApplicationType.WEB: "https://app.example.com/callback",
    ApplicationType.NATIVE: "com.example.app:/callback",
    ApplicationType.BROWSER: "https://app.example.com/",
}

_ACCESS = gettext_lazy("Grants and authentication")
_TOKENS = gettext_lazy("Tokens")
_CONSENT_LABELS = {
    ConsentRule.WHEN_FOREIGN: gettext_lazy("People of other organizations"),
    ConsentRule.ALWAYS: gettext_lazy("Everyone"),
    ConsentRule.NEVER: gettext_lazy("Nobody"),
}


def _consent_options(page: Any) -> Sequence[Sequence[object]]:
    """The rule never is offered only to those who may choose it, or if it is set already."""
    return [
        (rule.value, page.translator.gettext(label))
        for rule, label in _CONSENT_LABELS.items()
        if rule is not ConsentRule.NEVER or page.can_set_consent_rule or rule is page.stored_consent
    ]


def _capability_options(names: Callable[[Capabilities], Sequence[str]], descriptions: Mapping[str, str]) -> Options:
    """Capability names, verbatim, each with an explanation if there is one."""
    code = Markup("<code>{}</code>")
    return lambda page: [
        (name, code.format(name), page.translate(descriptions.get(name, "")))
        for name in names(page.services.capabilities)
    ]


#: In the order of forms and pages; groups come last on forms. The first step of the registration chooses the type.
APPLICATION_FIELDS = labelled_fields(
    Application,
    {
        "name": FieldLabel(gettext_lazy("Name")),
        "response_types": FieldLabel(
            gettext_lazy("Response types"),
            section=_ACCESS,
            options=_capability_options(lambda capabilities: capabilities.response_types, RESPONSE_TYPE_DESCRIPTIONS),
        ),
        "grant_types": FieldLabel(
            gettext_lazy("Grant types"),
            section=_ACCESS,
            options=_capability_options(lambda capabilities: capabilities.grant_types, GRANT_TYPE_DESCRIPTIONS),
        ),
        "authentication_method": FieldLabel(
            gettext_lazy("Authentication method"),
            section=_ACCESS,
            options=_capability_options(
                lambda capabilities: capabilities.authentication_methods, AUTHENTICATION_METHOD_DESCRIPTIONS
            ),
        ),
        "access_token_type": replace(ACCESS_TOKEN_TYPE_LABEL, section=_TOKENS),
        "redirect_uris": FieldLabel(gettext_lazy("Redirect URIs")),
        "post_logout_redirect_uris": FieldLabel(
            gettext_lazy("Post-logout redirect URIs"),
            gettext_lazy("Where people return after signing out, one address per line."),
        ),
        "access_token_lifetime": FieldLabel(gettext_lazy("Lifetime of access tokens"), section=_TOKENS),
        "id_token_lifetime": FieldLabel(gettext_lazy("Lifetime of ID tokens"), section=_TOKENS),
        "id_token_userinfo_assertion": FieldLabel(
            gettext_lazy("User Info inside ID Token"),
            gettext_lazy("Profile, email and other claims are in the ID token, even if an access token is issued."),
            section=_TOKENS,
        ),
        "access_token_userinfo_assertion": FieldLabel(
            gettext_lazy("User Info inside access token"),
            gettext_lazy("Profile, email and other claims are also in the access token, if it is a JWT."),
            section=_TOKENS,
        ),
        "assert_roles_in_access_token": FieldLabel(
            gettext_lazy("Roles in the access token"), gettext_lazy("Only a JWT can carry them."), section=_TOKENS
        ),
        "assert_roles_in_id_token": FieldLabel(gettext_lazy("Roles in the ID token"), section=_TOKENS),
        "consent": FieldLabel(
            gettext_lazy("Asked for consent"),
            gettext_lazy(
                "Who is asked for consent before the application receives their data. Organizations "
                "with a grant of the project do not count as other organizations."
            ),
            value_labels=_CONSENT_LABELS,
            options=_consent_options,
        ),
        "may_manage": FieldLabel(
            gettext_lazy("May manage"),
            gettext_lazy(
                "It gets tokens that let it act with its users' manager permissions, on their behalf. "
                "Users are asked for consent first."
            ),
            value_labels={True: gettext_lazy("Acts with its users' manager permissions, on their behalf."), False: ""},
        ),
        "development": FieldLabel(
            gettext_lazy("Development"),
            gettext_lazy(
                "Redirect URIs may start with http:// on any host. Use this only while you build the application."
            ),
            section=_ACCESS,
        ),
    },
    hidden=("type",),
)
