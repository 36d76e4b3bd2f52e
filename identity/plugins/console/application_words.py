"""What the settings of an application mean, in one sentence each; names that plugins bring have none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from identity.domain.applications import Application, ApplicationType, ConsentRule
from identity.domain.entity import Member, members
from identity.domain.users import TokenFormat
from identity.domain.words import say
from identity.pages.translation import Words
from identity.plugins.console.console_page import ConsolePage
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


CONSENT: Mapping[ConsentRule, str] = {
    ConsentRule.WHEN_FOREIGN: say("People of other organizations"),
    ConsentRule.ALWAYS: say("Everybody"),
    ConsentRule.NEVER: say("Nobody"),
}


#: A redirect URI of each type that has one.
EXAMPLES: Mapping[ApplicationType | None, str] = {
    ApplicationType.WEB: "https://app.example.com/callback",
    ApplicationType.NATIVE: "com.example.app:/callback",
    ApplicationType.BROWSER: "https://app.example.com/",
}

TOKEN_FORMATS: Mapping[TokenFormat, str] = {TokenFormat.OPAQUE: say("Opaque"), TokenFormat.JWT: say("JWT")}
#: What can be one of a few, in words.
WORDS: dict[Any, str] = {**CONSENT, **TOKEN_FORMATS}


def token_formats(page: ConsolePage) -> Sequence[Sequence[object]]:
    """What access tokens can be."""
    return [(one.value, page.words.t(words)) for one, words in TOKEN_FORMATS.items()]


def _consents(page: Any) -> Sequence[Sequence[object]]:
    """Never only for whoever decides, and where it is so already."""
    rules = (one for one in ConsentRule if one is not ConsentRule.NEVER or page.decides or one is page.stored_consent)
    return [(one.value, page.words.t(CONSENT[one])) for one in rules]


#: These come first, the others as the entity has them.
_FIRST = ("name", "response_types", "grant_types", "authentication_method", "access_token_type")


def settings(kind: ApplicationType | None = None) -> Sequence[Member]:
    """What can be set of an application, or of one of this type."""
    found = [one for one in members(Application).values() if one.changeable]
    fitting = [one for one in found if kind is None or kind in (one.declared.only_for or {kind})]
    return sorted(fitting, key=lambda one: _FIRST.index(one.name) if one.name in _FIRST else len(_FIRST))


#: What each setting can be, by the place of what the service offers, and what that means.
_OFFERED = {
    "response_types": ("response_types", RESPONSE_TYPES),
    "grant_types": ("grant_types", GRANT_TYPES),
    "authentication_method": ("authentication_methods", AUTHENTICATION_METHODS),
}
_CHOICES: Mapping[Any, Options] = {TokenFormat: token_formats, ConsentRule: _consents}


def choices(setting: Member) -> Options | None:
    """What the setting can be; None if it is no choice."""
    if setting.name not in _OFFERED:
        return _CHOICES.get(setting.type)
    offered, meant = _OFFERED[setting.name]
    return lambda page: literal_options(getattr(page.services.choices, offered), meant, page.words)


def singular(name: str) -> str:
    """What forms call a setting: they name one of what commands name all."""
    return name.removesuffix("s") if name in ("response_types", "grant_types") else name


def literal_options(
    names: Sequence[str], sentences: Mapping[str, str], words: Words
) -> list[tuple[str, Markup, Markup | str]]:
    """Names of the protocol to choose from, literal, each with its sentence if there is one."""
    return [
        (name, Markup("<code>{}</code>").format(name), words.t(sentences[name]) if name in sentences else "")
        for name in names
    ]
