"""Application: an OIDC client of a project."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from urllib.parse import urlsplit

from identity.domain.entity import entity, inner, made, once, setting, stamp
from identity.domain.names import name_problem
from identity.domain.organizations import Organization
from identity.domain.projects import Project
from identity.domain.rules import lifetime_problem
from identity.domain.search import search_text
from identity.domain.users import TOKEN_FORMAT_WORDS, TokenFormat
from identity.domain.words import say

MAX_LIVE_SECRETS = 2


class ApplicationType(StrEnum):
    """Where an application runs, and so what it can keep secret."""

    WEB = "web"
    NATIVE = "native"
    BROWSER = "browser"
    API = "api"


class ConsentRule(StrEnum):
    """Which people are asked before an application gets anything of them."""

    WHEN_FOREIGN = "when_foreign"
    ALWAYS = "always"
    NEVER = "never"


@entity
class ClientSecret:
    """A client secret as it is stored: its SHA-256."""

    id: str = made()
    digest: bytes = inner()
    created_at: datetime = stamp()
    last_used_at: datetime | None = made(default=None)


#: People sign in to all but APIs.
_OF_PEOPLE = frozenset({ApplicationType.WEB, ApplicationType.NATIVE, ApplicationType.BROWSER})
_ACCESS = say("Grants and authentication")
_TOKENS = say("Tokens")


@entity
class Application:
    """An OIDC client. ``id`` is the client id, letters and digits alone.

    With ``may_manage`` it can get tokens for the service itself, to do what its user may do as a manager. ``branded``
    tells that there is a Branding to look for.
    """

    id: str = made()
    project_id: str = made()
    name: str = setting(rule=name_problem, label=say("Name"))
    type: ApplicationType = once()
    created_at: datetime = stamp()
    changed_at: datetime = stamp()
    authentication_method: str = setting(
        default="client_secret_basic", section=_ACCESS, label=say("Authentication method")
    )
    response_types: frozenset[str] = setting(
        default=frozenset(), section=_ACCESS, only_for=_OF_PEOPLE, label=say("Response types")
    )
    grant_types: frozenset[str] = setting(default=frozenset(), section=_ACCESS, label=say("Grant types"))
    redirect_uris: tuple[str, ...] = setting(default=(), only_for=_OF_PEOPLE, label=say("Redirect URIs"))
    post_logout_redirect_uris: tuple[str, ...] = setting(
        default=(),
        only_for=_OF_PEOPLE,
        label=say("Post-logout redirect URIs"),
        hint=say("Where people return after signing out, one address a line."),
    )
    access_token_type: TokenFormat = setting(
        default=TokenFormat.OPAQUE,
        section=_TOKENS,
        label=say("Access token type"),
        hint=say("An opaque token can be checked by introspection alone. A JWT can also be checked without asking."),
        words=TOKEN_FORMAT_WORDS,
    )
    access_token_lifetime: timedelta | None = setting(
        default=None, rule=lifetime_problem, section=_TOKENS, label=say("Lifetime of access tokens")
    )
    id_token_lifetime: timedelta | None = setting(
        default=None,
        rule=lifetime_problem,
        section=_TOKENS,
        only_for=_OF_PEOPLE,
        label=say("Lifetime of ID tokens"),
    )
    id_token_userinfo_assertion: bool = setting(
        default=False,
        section=_TOKENS,
        only_for=_OF_PEOPLE,
        label=say("User Info inside ID Token"),
        hint=say("Profile, email and the like stand in the ID token, beside an access token too."),
    )
    access_token_userinfo_assertion: bool = setting(
        default=False,
        section=_TOKENS,
        only_for=_OF_PEOPLE,
        label=say("User Info inside access token"),
        hint=say("Profile, email and the like stand in the access token too, if it is a JWT."),
    )
    assert_roles_in_access_token: bool = setting(
        default=False,
        section=_TOKENS,
        only_for=_OF_PEOPLE,
        label=say("Roles in the access token"),
        hint=say("Only a JWT can carry them."),
    )
    assert_roles_in_id_token: bool = setting(
        default=False, section=_TOKENS, only_for=_OF_PEOPLE, label=say("Roles in the ID token")
    )
    consent: ConsentRule = setting(
        default=ConsentRule.WHEN_FOREIGN,
        only_for=_OF_PEOPLE,
        label=say("Asked for consent"),
        hint=say(
            "Who is asked before the application learns anything of them. Organizations that the project is granted to"
            " are not others."
        ),
        words={
            ConsentRule.WHEN_FOREIGN: say("People of other organizations"),
            ConsentRule.ALWAYS: say("Everybody"),
            ConsentRule.NEVER: say("Nobody"),
        },
    )
    may_manage: bool = setting(
        default=False,
        permission="instance.write",
        label=say("May manage"),
        hint=say(
            "It gets tokens with which it does in its users' names what they may do as managers. They are asked first."
        ),
        words={True: say("Does in its users' names what they may do as managers."), False: ""},
    )
    development: bool = setting(
        default=False,
        section=_ACCESS,
        only_for=_OF_PEOPLE,
        label=say("Development"),
        hint=say("Redirect URIs may start with http:// on any host. Only while you build the application."),
    )
    branded: bool = inner(default=False)
    active: bool = made(default=True)
    version: int = stamp(default=1)

    @property
    def search_text(self) -> str:
        """Where searches look for it."""
        return search_text(self.name)

    @property
    def public(self) -> bool:
        """True if it cannot keep a secret: it names itself, and proves with PKCE alone that a code is its own."""
        return self.authentication_method == "none"

    def accepts_redirect_uri(self, uri: str) -> bool:
        """True if the address is registered, letter by letter; nothing is decoded or tidied up first.

        The only exception: a native application may vary the port of a loopback address (RFC 8252 §7.3).
        """
        if uri in self.redirect_uris:
            return True
        if self.type is not ApplicationType.NATIVE:
            return False
        portless = _without_loopback_port(uri)
        return portless is not None and any(portless == _without_loopback_port(one) for one in self.redirect_uris)

    @property
    def origins(self) -> frozenset[str]:
        """The web origins of its redirect URIs (RFC 6454 §6.2): from there a browser's script may call us."""
        return frozenset(origin for uri in self.redirect_uris if (origin := web_origin(uri)) is not None)


@dataclass(frozen=True, slots=True)
class Client:
    """An application with everything that decides whether it may act: secrets, project, organization.

    ``secret_id`` names the secret that it has just shown.
    """

    application: Application
    secrets: tuple[ClientSecret, ...]
    project: Project
    organization: Organization
    secret_id: str | None = None

    @property
    def id(self) -> str:
        """The client id."""
        return self.application.id

    @property
    def active(self) -> bool:
        """True while neither application, project nor organization is deactivated."""
        return self.application.active and self.project.active and self.organization.active

    def in_audience(self, audience: tuple[str, ...]) -> bool:
        """True if a token with this audience is meant for the client: its id or its project's id is named."""
        return self.application.id in audience or self.project.id in audience


_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1", "[::1]"})
_LOOPBACK_URI = re.compile(r"(?P<host>http://(?:localhost|127\.0\.0\.1|\[::1\]))(?::[0-9]{1,5})?(?P<rest>[/?].*|)\Z")
_PRIVATE_SCHEME = re.compile(r"[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+\Z")
_URI_FORBIDDEN = re.compile(r"[\s\\*\x00-\x20\x7f-\uffff]")


def redirect_uri_problem(uri: str, *, type: ApplicationType, development: bool = False) -> str | None:  # noqa: A002
    """What is wrong with a redirect URI, as a sentence, or None.

    https everywhere; http for loopback hosts or with the development switch; native applications may use a
    private-use scheme that is a reversed domain name (RFC 8252 §7.1).
    """
    if _URI_FORBIDDEN.search(uri) or len(uri) > 2000:
        return say("{uri} holds characters that an address cannot have, or is longer than 2000.", uri=repr(uri))
    try:
        parts = urlsplit(uri)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return say("{uri} is not an address.", uri=uri)
    if "#" in uri:
        return say("{uri} must not have a fragment (#).", uri=uri)
    if "@" in parts.netloc:
        return say("{uri} must not hold a user name.", uri=uri)
    if type is ApplicationType.NATIVE and _PRIVATE_SCHEME.match(parts.scheme):
        return None
    if parts.scheme not in ("https", "http") or not host:
        return say("{uri} must be an absolute address that starts with https://.", uri=uri)
    if parts.scheme == "http" and host not in _LOOPBACK and not development:
        return say("{uri} must start with https://; http:// is for loopback hosts and development.", uri=uri)
    return None


def _without_loopback_port(uri: str) -> str | None:
    match = _LOOPBACK_URI.match(uri)
    return None if match is None else match["host"] + match["rest"]


def web_origin(uri: str) -> str | None:
    """Scheme, host and, unless it is the scheme's own, port of an http(s) address, as browsers send it; else None."""
    parts = urlsplit(uri)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    default = 443 if parts.scheme == "https" else 80
    port = "" if parts.port in (None, default) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"
