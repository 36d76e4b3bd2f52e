"""Labels and explanations for the settings of applications; values that plugins add have none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from identity.domain.applications import Application, ApplicationType, ConsentRule
from identity.domain.entity import entity_fields
from identity.domain.messages import gettext_lazy
from identity.plugins.console.form_fields import Options


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
        gettext_lazy("Takes access tokens and asks us whether they are good. Nobody signs in to it."),
        "service",
    ),
}

RESPONSE_TYPE_DESCRIPTIONS: Mapping[str, str] = {
    "code": gettext_lazy("A code, which the application exchanges for tokens. Right for nearly every application."),
    "id_token": gettext_lazy("Only an ID token, through the browser. For applications that only ask who somebody is."),
    "id_token token": gettext_lazy("ID token and access token, through the browser. For old applications alone."),
}

GRANT_TYPE_DESCRIPTIONS: Mapping[str, str] = {
    "authorization_code": gettext_lazy("Exchanges the code of a sign-in for tokens."),
    "refresh_token": gettext_lazy("Gets new tokens without the person, if it asked for the scope offline_access."),
    "client_credentials": gettext_lazy("Gets tokens for itself, without a person."),
}

AUTHENTICATION_METHOD_DESCRIPTIONS: Mapping[str, str] = {
    "client_secret_basic": gettext_lazy("Client id and secret in the Authorization header."),
    "client_secret_post": gettext_lazy("Client id and secret in the form."),
    "none": gettext_lazy("Public client: no secret. PKCE proves that a code is its own."),
}

REDIRECT_URI_EXAMPLES: Mapping[ApplicationType | None, str] = {
    ApplicationType.WEB: "https://app.example.com/callback",
    ApplicationType.NATIVE: "com.example.app:/callback",
    ApplicationType.BROWSER: "https://app.example.com/",
}

#: First in forms and on pages, in this order; the other fields follow in the entity's order.
LEADING_FIELDS = ("name", "response_types", "grant_types", "authentication_method", "access_token_type")


def _consent_options(page: Any) -> Sequence[Sequence[object]]:
    """The rule never is offered only to those who may choose it, or if it is set already."""
    rules = (
        consent_rule
        for consent_rule in ConsentRule
        if consent_rule is not ConsentRule.NEVER or page.can_set_consent_rule or consent_rule is page.stored_consent
    )
    labels = entity_fields(Application)["consent"].options.value_labels
    return [(rule.value, page.translator.gettext(labels[rule])) for rule in rules]


def _capability_options(choices: str, sentences: Mapping[str, str]) -> Options:
    """Capability names, verbatim, each with an explanation if there is one."""
    code = Markup("<code>{}</code>")
    return lambda page: [
        (name, code.format(name), page.translator.gettext(sentences[name]) if name in sentences else "")
        for name in getattr(page.services.capabilities, choices)
    ]


#: Options of fields that depend on the caller's permissions or on plugins.
FIELD_OPTIONS: Mapping[str, Options] = {
    "response_types": _capability_options("response_types", RESPONSE_TYPE_DESCRIPTIONS),
    "grant_types": _capability_options("grant_types", GRANT_TYPE_DESCRIPTIONS),
    "authentication_method": _capability_options("authentication_methods", AUTHENTICATION_METHOD_DESCRIPTIONS),
    "consent": _consent_options,
}
