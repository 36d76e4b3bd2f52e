"""What the settings of an application mean, in one sentence each; names that plugins bring have none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from identity.domain.applications import ApplicationType, ConsentRule
from identity.domain.words import say
from identity.pages.translation import Words


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


CONSENT: Mapping[ConsentRule, str] = {
    ConsentRule.WHEN_FOREIGN: say("People of other organizations"),
    ConsentRule.ALWAYS: say("Everybody"),
    ConsentRule.NEVER: say("Nobody"),
}


def literal_options(
    names: Sequence[str], sentences: Mapping[str, str], words: Words
) -> list[tuple[str, Markup, Markup | str]]:
    """Names of the protocol to choose from, literal, each with its sentence if there is one."""
    return [
        (name, Markup("<code>{}</code>").format(name), words.t(sentences[name]) if name in sentences else "")
        for name in names
    ]
