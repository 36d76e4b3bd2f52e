"""What the settings of an application mean, in one sentence each; names that plugins bring have none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from identity.domain.applications import Application, ApplicationType, ConsentRule
from identity.domain.entity import members
from identity.domain.words import say
from identity.plugins.console.fields import Options


@dataclass(frozen=True)
class TypeWords:
    """An application type in words; ``icon`` is one of the macro's."""

    label: str
    sentence: str
    icon: str


TYPES: Mapping[ApplicationType, TypeWords] = {
    ApplicationType.WEB: TypeWords(
        say("Web application"), say("Runs on a server, which can keep a secret. People sign in to it."), "apps"
    ),
    ApplicationType.NATIVE: TypeWords(
        say("Native application"),
        say("Runs on a phone, a desktop or a command line. It has no secret; PKCE protects the sign-in."),
        "device",
    ),
    ApplicationType.BROWSER: TypeWords(
        say("Browser application"),
        say("Runs as script in the browser (single-page application). It has no secret; PKCE protects the sign-in."),
        "overview",
    ),
    ApplicationType.API: TypeWords(
        say("API"), say("Takes access tokens and asks us whether they are good. Nobody signs in to it."), "service"
    ),
}

RESPONSE_TYPES: Mapping[str, str] = {
    "code": say("A code, which the application exchanges for tokens. Right for nearly every application."),
    "id_token": say("Only an ID token, through the browser. For applications that only ask who somebody is."),
    "id_token token": say("ID token and access token, through the browser. For old applications alone."),
}

GRANT_TYPES: Mapping[str, str] = {
    "authorization_code": say("Exchanges the code of a sign-in for tokens."),
    "refresh_token": say("Gets new tokens without the person, if it asked for the scope offline_access."),
    "client_credentials": say("Gets tokens for itself, without a person."),
}

AUTHENTICATION_METHODS: Mapping[str, str] = {
    "client_secret_basic": say("Client id and secret in the Authorization header."),
    "client_secret_post": say("Client id and secret in the form."),
    "none": say("Public client: no secret. PKCE proves that a code is its own."),
}

#: A redirect URI of each type that has one.
EXAMPLES: Mapping[ApplicationType | None, str] = {
    ApplicationType.WEB: "https://app.example.com/callback",
    ApplicationType.NATIVE: "com.example.app:/callback",
    ApplicationType.BROWSER: "https://app.example.com/",
}

#: These come first in forms and on pages, the others as the entity has them.
FIRST = ("name", "response_types", "grant_types", "authentication_method", "access_token_type")


def _consents(page: Any) -> Sequence[Sequence[object]]:
    """Never only for whoever decides, and where it is so already."""
    rules = (one for one in ConsentRule if one is not ConsentRule.NEVER or page.decides or one is page.stored_consent)
    words = members(Application)["consent"].declared.words
    return [(one.value, page.words.t(words[one])) for one in rules]


def _offered(choices: str, sentences: Mapping[str, str]) -> Options:
    """Names of the protocol that the service offers, literal, each with its sentence if there is one."""
    code = Markup("<code>{}</code>")
    return lambda page: [
        (name, code.format(name), page.words.t(sentences[name]) if name in sentences else "")
        for name in getattr(page.services.choices, choices)
    ]


#: What can be chosen of settings whose values depend on who looks, or on what plugins offer.
OPTIONS: Mapping[str, Options] = {
    "response_types": _offered("response_types", RESPONSE_TYPES),
    "grant_types": _offered("grant_types", GRANT_TYPES),
    "authentication_method": _offered("authentication_methods", AUTHENTICATION_METHODS),
    "consent": _consents,
}
