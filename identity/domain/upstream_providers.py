"""Upstream identity providers at which users can sign in: OpenID providers and GitHub."""

import re
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from identity.domain.entity import create_only, entity, internal, mutable, read_only, versioned
from identity.domain.messages import gettext_lazy
from identity.domain.names import display_name_error, is_printable
from identity.domain.projects import resource_uri_error
from identity.domain.search import search_text
from identity.domain.validators import is_https_url, text_problem


class UpstreamKind(StrEnum):
    """The provider's product, which determines its protocol details."""

    OPENID = "openid"
    GOOGLE = "google"
    ENTRA = "entra"
    GITLAB = "gitlab"
    APPLE = "apple"
    GITHUB = "github"
    OKTA = "okta"
    KEYCLOAK = "keycloak"


class UpstreamAuthentication(StrEnum):
    """How the service authenticates as a client at the provider."""

    CLIENT_SECRET_BASIC = "client_secret_basic"  # noqa: S105 - names of the protocol
    CLIENT_SECRET_POST = "client_secret_post"  # noqa: S105
    PRIVATE_KEY_JWT = "private_key_jwt"


_LONGEST_CLAIM = 200
_LONGEST_LINE = 2000
_CLIENT_ID = re.compile(r"[A-Za-z0-9]{1,128}")
_TENANT = re.compile(
    r"https://login\.microsoftonline\.com/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/v2\.0\Z", re.IGNORECASE
)
_TENANT_EXAMPLE = "https://login.microsoftonline.com/01234567-89ab-cdef-0123-456789abcdef/v2.0"
_REALM_EXAMPLE = "https://keycloak.example.com/realms/company"
_REALM = re.compile(r".+/realms/[^/]+\Z")


def issuer_error(text: str) -> str | None:
    """An issuer (OpenID Connect Discovery §3): https, without query and fragment; http on this machine only."""
    if is_https_url(text, max_length=500, forbidden=" ?#@\\"):
        return None
    return gettext_lazy("Enter an issuer such as https://login.example.com.")


def issuer_error_for_kind(kind: UpstreamKind, issuer: str) -> str | None:
    """The same for providers of this kind; an empty issuer means that of the kind."""
    if not issuer:
        return None if kind in UpstreamProvider.ISSUERS else gettext_lazy("Enter the issuer.")
    if kind is UpstreamKind.ENTRA and not _TENANT.match(issuer):
        return gettext_lazy("Enter the issuer of one tenant, with its id: {example}.", example=_TENANT_EXAMPLE)
    if kind in (UpstreamKind.GOOGLE, UpstreamKind.APPLE) and issuer != UpstreamProvider.ISSUERS[kind]:
        return gettext_lazy("Leave the issuer empty: there is only one of this kind.")
    if kind is UpstreamKind.KEYCLOAK and not _REALM.match(issuer):
        return gettext_lazy("Enter the issuer of one realm: {example}.", example=_REALM_EXAMPLE)
    return issuer_error(issuer)


def _unless_empty_issuer(text: str) -> str | None:
    return issuer_error(text) if text else None


def _client_id_problem(text: str) -> str | None:
    if not text or len(text) > 500 or not is_printable(text) or " " in text:
        return gettext_lazy("Enter the client id, without spaces.")
    return None


class ClaimMapping:
    """Maps claims of a provider to fields of a profile: lines such as "given_name = first_name"."""

    #: Profile fields that can be imported, each with its usual claim.
    DEFAULT: Mapping[str, str] = {
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

    @staticmethod
    def error(text: str) -> str | None:
        """A line of the claim mapping: ``family_name = sn``; an empty right side ignores the field."""
        name, sign, claim = (part.strip() for part in text.partition("="))
        if (
            not sign
            or name not in ClaimMapping.DEFAULT
            or len(claim) > _LONGEST_CLAIM
            or not is_printable(claim)
            or " " in claim
        ):
            return gettext_lazy("Enter a line such as {example}.", example="family_name = sn")
        return None


def identity_assertion_client_error(text: str) -> str | None:
    """A line with a client id, and the addresses of the APIs to which its tokens are limited, separated by spaces."""
    client_id, *resources = text.split(" ")
    if len(text) > _LONGEST_LINE or not _CLIENT_ID.fullmatch(client_id) or any(map(resource_uri_error, resources)):
        return gettext_lazy("Enter a line such as {example}.", example="CLIENT_ID https://api.example.com")
    return None


@entity
class UpstreamProvider:
    """A provider at which users of an organization, or with ``everywhere`` of all organizations, can sign in. Its users
    are identified by issuer and subject only. ``secret`` is sealed: the client secret, or the key that signs one. It is
    never displayed; ``secret_changed_at`` is when it was set. ``identity_assertion_clients`` are the applications that
    get tokens for its assertions (ID-JAG), each with the resources that these are limited to, if any."""

    #: Issuers of products that have a single one; others must be configured.
    ISSUERS: ClassVar[Mapping[UpstreamKind, str]] = {
        UpstreamKind.GOOGLE: "https://accounts.google.com",
        UpstreamKind.GITLAB: "https://gitlab.com",
        UpstreamKind.APPLE: "https://appleid.apple.com",
        UpstreamKind.GITHUB: "https://github.com",
    }
    #: Prefix of callback paths.
    CALLBACK_PATH: ClassVar[str] = "/login/upstream"

    id: str = read_only()
    organization_id: str = read_only()
    name: str = mutable(validator=display_name_error)
    kind: UpstreamKind = create_only(default=UpstreamKind.OPENID)
    client_id: str = mutable(validator=_client_id_problem)
    created_at: datetime = versioned()
    changed_at: datetime = versioned()
    issuer: str = mutable(default="", validator=_unless_empty_issuer)
    authentication: UpstreamAuthentication = mutable(default=UpstreamAuthentication.CLIENT_SECRET_BASIC)
    team_id: str = mutable(default="", validator=text_problem)
    key_id: str = mutable(default="", validator=text_problem)
    scopes: str = mutable(default="", validator=text_problem)
    claims: tuple[str, ...] = mutable(default=(), item_validator=ClaimMapping.error)
    create_accounts: bool = mutable(default=False)
    trust_email: bool = mutable(default=False)
    by_domain: bool = mutable(default=False)
    trust_methods: bool = mutable(default=False, permission="instance.write")
    instance_managed: bool = mutable(default=False, permission="instance.write")
    sign_out_there: bool = mutable(default=False)
    everywhere: bool = mutable(default=False, permission="instance.write")
    identity_assertion_clients: tuple[str, ...] = mutable(default=(), item_validator=identity_assertion_client_error)
    secret: bytes = internal(default=b"")
    secret_changed_at: datetime | None = read_only(default=None)
    active: bool = read_only(default=True)
    version: int = versioned(default=1)

    @property
    def search_text(self) -> str:
        return search_text(self.name)

    @property
    def effective_issuer(self) -> str:
        """The configured issuer, or that of its kind."""
        return self.issuer or self.ISSUERS.get(self.kind, "")

    @property
    def uses_private_key_jwt(self) -> bool:
        """True if the service authenticates there with its own signing key."""
        return self.authentication is UpstreamAuthentication.PRIVATE_KEY_JWT

    @property
    def callback_path(self) -> str:
        """The callback path on the login host, distinct for each provider."""
        return f"{self.CALLBACK_PATH}/{self.id}"

    @property
    def is_complete(self) -> bool:
        """True if everything for a sign-in there is configured; a draft need not be active to be tested."""
        by_key = self.uses_private_key_jwt and self.kind not in (UpstreamKind.APPLE, UpstreamKind.GITHUB)
        return by_key or bool(self.secret)

    @property
    def is_usable(self) -> bool:
        """True if users can sign in there: it is active and completely configured."""
        return self.active and self.is_complete

    @property
    def asserting_client_ids(self) -> frozenset[str]:
        """The applications that get tokens for its assertions."""
        return frozenset(line.partition(" ")[0] for line in self.identity_assertion_clients)

    def assertion_resources(self, client_id: str) -> frozenset[str] | None:
        """The resources that tokens of the application are limited to, which gets tokens for its assertions; None for
        any."""
        lines = [line.split(" ") for line in self.identity_assertion_clients]
        listed = [resources for listed_id, *resources in lines if listed_id == client_id]
        return None if not all(listed) else frozenset(resource for resources in listed for resource in resources)

    @property
    def claim_mapping(self) -> Mapping[str, str]:
        """The claim for each profile field; empty for ignored fields."""
        pairs = (line.partition("=") for line in self.claims)
        return {**ClaimMapping.DEFAULT, **{name.strip(): claim.strip() for name, _, claim in pairs}}
