"""UpstreamProvider: somebody else who knows people, at whom they can sign in: an OpenID provider, or GitHub."""

import re
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from urllib.parse import urlsplit

from identity.domain.entity import entity, inner, made, once, setting, stamp
from identity.domain.names import is_printable, name_problem
from identity.domain.rules import text_problem
from identity.domain.search import search_text
from identity.domain.words import say


class UpstreamKind(StrEnum):
    """Whose ways it has."""

    OPENID = "openid"
    GOOGLE = "google"
    ENTRA = "entra"
    GITLAB = "gitlab"
    APPLE = "apple"
    GITHUB = "github"


class UpstreamAuthentication(StrEnum):
    """How the service proves there to be the client."""

    CLIENT_SECRET_BASIC = "client_secret_basic"  # noqa: S105 - names of the protocol
    CLIENT_SECRET_POST = "client_secret_post"  # noqa: S105
    PRIVATE_KEY_JWT = "private_key_jwt"


#: Issuers of those that have one for everybody; others have to be told.
ISSUERS: Mapping[UpstreamKind, str] = {
    UpstreamKind.GOOGLE: "https://accounts.google.com",
    UpstreamKind.GITLAB: "https://gitlab.com",
    UpstreamKind.APPLE: "https://appleid.apple.com",
    UpstreamKind.GITHUB: "https://github.com",
}

#: Below it lie the paths to which providers send people back.
RETURN_PATH = "/login/upstream"

#: What of a person can be taken from elsewhere, each with the claim that it usually comes from.
USUAL_CLAIMS: Mapping[str, str] = {
    "user_name": "preferred_username",
    "given_name": "given_name",
    "family_name": "family_name",
    "display_name": "name",
    "nickname": "nickname",
    "email": "email",
    "picture": "picture",
    "locale": "locale",
    "zoneinfo": "zoneinfo",
}

_LONGEST_CLAIM = 200
_MORE = say("More settings")
_TENANT = re.compile(
    r"https://login\.microsoftonline\.com/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/v2\.0\Z", re.IGNORECASE
)
_TENANT_EXAMPLE = "https://login.microsoftonline.com/01234567-89ab-cdef-0123-456789abcdef/v2.0"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def issuer_problem(text: str) -> str | None:
    """An issuer (OpenID Connect Discovery §3): https, without query and fragment; http on this machine alone."""
    wrong = say("Enter an issuer such as https://login.example.com.")
    if len(text) > 500 or not is_printable(text) or any(one in text for one in " ?#@\\"):
        return wrong
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return wrong
    return None if host and (parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)) else wrong


def issuer_of_kind_problem(kind: UpstreamKind, issuer: str) -> str | None:
    """The same, by what providers of this kind have; empty for that of its kind."""
    if not issuer:
        return None if kind in ISSUERS else say("Enter the issuer.")
    if kind is UpstreamKind.ENTRA and not _TENANT.match(issuer):
        return say("Enter the issuer of one tenant, with its id: {example}.", example=_TENANT_EXAMPLE)
    if kind in (UpstreamKind.GOOGLE, UpstreamKind.APPLE) and issuer != ISSUERS[kind]:
        return say("Leave the issuer empty: there is only one of this kind.")
    return issuer_problem(issuer)


def _unless_empty_issuer(text: str) -> str | None:
    return issuer_problem(text) if text else None


def _client_id_problem(text: str) -> str | None:
    if not text or len(text) > 500 or not is_printable(text) or " " in text:
        return say("Enter the client id, without spaces.")
    return None


def claim_line_problem(text: str) -> str | None:
    """A line of the table of claims: ``family_name = sn``; nothing after the sign leaves the field alone."""
    name, sign, claim = (part.strip() for part in text.partition("="))
    if not sign or name not in USUAL_CLAIMS or len(claim) > _LONGEST_CLAIM or not is_printable(claim) or " " in claim:
        return say("Enter a line such as {example}.", example="family_name = sn")
    return None


@entity
class UpstreamProvider:
    """Where people can sign in instead of here. It is an organization's, and with ``everywhere`` for all of them.

    Whoever comes from it is known by issuer and subject alone. ``secret`` is sealed: the client secret, or the key that
    signs one. It is told to nobody; ``secret_changed_at`` says since when there is this one.
    """

    id: str = made()
    organization_id: str = made()
    name: str = setting(
        rule=name_problem, label=say("Name"), hint=say("Shown on the button with which people sign in there.")
    )
    kind: UpstreamKind = once(
        default=UpstreamKind.OPENID,
        label=say("Kind"),
        words={
            UpstreamKind.OPENID: say("OpenID provider"),
            UpstreamKind.GOOGLE: "Google",
            UpstreamKind.ENTRA: "Microsoft Entra",
            UpstreamKind.GITLAB: "GitLab",
            UpstreamKind.APPLE: "Apple",
            UpstreamKind.GITHUB: "GitHub",
        },
    )
    client_id: str = setting(
        rule=_client_id_problem, label=say("Client id"), hint=say("As the provider has registered this service.")
    )
    created_at: datetime = stamp()
    changed_at: datetime = stamp()
    issuer: str = setting(
        default="",
        rule=_unless_empty_issuer,
        label=say("Issuer"),
        hint=say(
            "For example {example}. Empty for Google, Apple, gitlab.com and github.com.",
            example="https://login.example.com",
        ),
    )
    authentication: UpstreamAuthentication = setting(
        section=_MORE,
        default=UpstreamAuthentication.CLIENT_SECRET_BASIC,
        label=say("Authentication method"),
        hint=say("How this service proves there who it is."),
        words={
            UpstreamAuthentication.CLIENT_SECRET_BASIC: say("Client secret in the header"),
            UpstreamAuthentication.CLIENT_SECRET_POST: say("Client secret in the form"),
            UpstreamAuthentication.PRIVATE_KEY_JWT: say("Signed with the key of this service"),
        },
    )
    team_id: str = setting(
        section=_MORE, default="", rule=text_problem, label=say("Team id"), hint=say("For Apple alone.")
    )
    key_id: str = setting(
        section=_MORE,
        default="",
        rule=text_problem,
        label=say("Key id"),
        hint=say("For Apple alone: of the key that stands in place of a client secret."),
    )
    scopes: str = setting(
        section=_MORE,
        default="",
        rule=text_problem,
        label=say("Scopes"),
        hint=say("What is asked for, separated by spaces. Empty for what is usual."),
    )
    claims: tuple[str, ...] = setting(
        section=_MORE,
        default=(),
        each=claim_line_problem,
        label=say("Claims"),
        hint=say(
            "Where the profile comes from, one a line, if not from the usual claim. For example {example}",
            example="family_name = sn",
        ),
    )
    create_accounts: bool = setting(
        default=False,
        label=say("Create accounts"),
        hint=say(
            "People who sign in there for the first time get an account here, if the rules of registration allow it."
        ),
        words={
            True: say("Whoever signs in there for the first time gets an account."),
            False: say("Only people who have linked their account can sign in there."),
        },
    )
    trust_email: bool = setting(
        default=False,
        label=say("Trust email addresses"),
        hint=say(
            "An address that the provider has verified counts as verified here, if it is of a domain that the"
            " organization has proven. Then it also finds the account of a person who has not linked it yet."
        ),
        words={
            True: say("Verified addresses in the organization's proven domains count here."),
            False: say("Addresses from there are unconfirmed."),
        },
    )
    by_domain: bool = setting(
        default=False,
        label=say("Go there at once"),
        hint=say(
            "People of the organization are sent there without being asked: whoever enters a login name of a domain"
            " that it has proven, and wherever an application asks for its people."
        ),
        words={
            True: say("People of the organization are sent there without being asked."),
            False: say("People choose it with its button."),
        },
    )
    trust_methods: bool = setting(
        section=_MORE,
        default=False,
        permission="instance.write",
        label=say("Trust authentication methods"),
        hint=say("What the provider says of how somebody signed in there counts here, second factors too."),
        words={
            True: say("How somebody signed in there counts here."),
            False: say("Factors are asked for here."),
        },
    )
    instance_managed: bool = setting(
        section=_MORE,
        default=False,
        permission="instance.write",
        label=say("Managed by the instance"),
        hint=say(
            "Only instance administrators can change it. People with a role at the instance can sign in only at such"
            " providers."
        ),
        words={
            True: say(
                "Only instance administrators can change it. People with a role at the instance can sign in with it."
            ),
            False: say(
                "Managers of the organization can change it. People with a role at the instance cannot sign in with it."
            ),
        },
    )
    sign_out_there: bool = setting(
        section=_MORE,
        default=False,
        label=say("Sign out there"),
        hint=say("Whoever signs out here is sent there to sign out too, where the provider has a page for it."),
        words={True: say("Signing out here signs out there, too."), False: say("Signing out here ends this alone.")},
    )
    everywhere: bool = setting(
        default=False,
        permission="instance.write",
        label=say("For all organizations"),
        hint=say("People of every organization can sign in there."),
        words={True: say("For people of all organizations."), False: ""},
    )
    secret: bytes = inner(default=b"")
    secret_changed_at: datetime | None = made(default=None)
    active: bool = made(default=True)
    version: int = stamp(default=1)

    @property
    def search_text(self) -> str:
        """Where searches look for it."""
        return search_text(self.name)

    @property
    def known_as(self) -> str:
        """The issuer, also where its kind says it."""
        return self.issuer or ISSUERS.get(self.kind, "")

    @property
    def signs_with_key(self) -> bool:
        """True if it proves with the service's own key who it is."""
        return self.authentication is UpstreamAuthentication.PRIVATE_KEY_JWT

    @property
    def return_path(self) -> str:
        """Where it sends people back to, on the login host: each provider to a path of its own."""
        return f"{RETURN_PATH}/{self.id}"

    @property
    def usable(self) -> bool:
        """True if people can sign in there: it is active, and what it takes to be known there is told."""
        by_key = self.signs_with_key and self.kind not in (UpstreamKind.APPLE, UpstreamKind.GITHUB)
        return self.active and (by_key or bool(self.secret))

    @property
    def claim_names(self) -> Mapping[str, str]:
        """The claim for each part of a profile; empty for parts that are left alone."""
        own = (line.partition("=") for line in self.claims)
        return {**USUAL_CLAIMS, **{name.strip(): claim.strip() for name, _, claim in own}}
