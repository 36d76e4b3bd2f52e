"""Applications: the OIDC clients of a project."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from urllib.parse import quote, unquote, urlsplit

from identity.domain.entity import create_only, entity, internal, mutable, read_only, versioned
from identity.domain.key_sets import assertion_algorithm_error, key_set_error, key_set_url_error
from identity.domain.messages import gettext_lazy
from identity.domain.names import display_name_error, is_printable
from identity.domain.organizations import Organization
from identity.domain.projects import Project, resource_uri_error
from identity.domain.search import search_text
from identity.domain.security_profiles import PROFILE_ALGORITHMS, SecurityProfile
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.domain.users import TokenFormat
from identity.domain.validators import LOOPBACK_HOSTS, is_https_url, lifetime_problem

MAX_LIVE_SECRETS = 2
#: The fields with the algorithm by which the service signs something for the application.
RESPONSE_ALGORITHM_FIELDS = (
    "id_token_signed_response_alg",
    "userinfo_signed_response_alg",
    "authorization_signed_response_alg",
    "introspection_signed_response_alg",
)
_LONGEST_LINE, _LONGEST_CLIENT_ID = 2000, 500
#: Client authentication with an assertion that the application signs (OpenID Connect Core §9).
PRIVATE_KEY_JWT = "private_key_jwt"
#: The same with its secret, of which the service then needs more than a digest.
CLIENT_SECRET_JWT = "client_secret_jwt"  # noqa: S105 - a word of the protocol
#: Client authentication with a certificate of an authority, or with one whose key is registered (RFC 8705 §2).
TLS_CLIENT_AUTH, SELF_SIGNED_TLS_CLIENT_AUTH = "tls_client_auth", "self_signed_tls_client_auth"
_MAX_CERTIFICATE_NAME_LENGTH = 500
#: The fields that name the certificate of an application with TLS_CLIENT_AUTH: exactly one of them.
CERTIFICATE_NAME_FIELDS = (
    "tls_client_auth_subject_dn",
    "tls_client_auth_san_dns",
    "tls_client_auth_san_uri",
    "tls_client_auth_san_ip",
    "tls_client_auth_san_email",
)


class ApplicationType(StrEnum):
    """Where an application runs, which decides whether it can keep a secret."""

    WEB = "web"
    NATIVE = "native"
    BROWSER = "browser"
    API = "api"


class ApplicationOrigin(StrEnum):
    """How an application came to be: a manager created it, it registered itself (RFC 7591), or it is known by the URL
    of its metadata."""

    MANAGER = "manager"
    REGISTRATION = "registration"
    METADATA_DOCUMENT = "metadata_document"


class ConsentRule(StrEnum):
    """Which users are asked for consent."""

    WHEN_FOREIGN = "when_foreign"
    ALWAYS = "always"
    NEVER = "never"


class SubjectType(StrEnum):
    """By which ``sub`` an application knows users (OpenID Connect Core §8)."""

    PUBLIC = "public"
    PAIRWISE = "pairwise"


@entity
class ClientSecret:
    """A stored client secret: its SHA-256."""

    id: str = read_only()
    digest: bytes = internal()
    created_at: datetime = versioned()
    last_used_at: datetime | None = read_only(default=None)


def certificate_name_error(name: str) -> str | None:
    """What is wrong with a name in a certificate, as a sentence, or None; its syntax depends on the field."""
    if len(name) > _MAX_CERTIFICATE_NAME_LENGTH or not name.isprintable():
        return gettext_lazy("Use at most {length} characters.", length=_MAX_CERTIFICATE_NAME_LENGTH)
    return None


def request_uri_error(text: str) -> str | None:
    """An https URL, possibly with the SHA-256 of its content as the fragment; http for this machine only."""
    address, _, digest = text.partition("#")
    if not address or key_set_url_error(address) is not None or (text != address and not _DIGEST.fullmatch(digest)):
        return gettext_lazy("Enter addresses that start with https://. A fragment is the SHA-256 of the content.")
    return None


_DIGEST = re.compile(r"[A-Za-z0-9_-]{43}")
#: Users sign in to all types except APIs.
_SIGN_IN_TYPES = frozenset({ApplicationType.WEB, ApplicationType.NATIVE, ApplicationType.BROWSER})


#: Fields that the metadata of an application known by its URL sets.
_METADATA_FIELDS = (
    "name",
    "type",
    "authentication_method",
    "token_endpoint_auth_signing_alg",
    "jwks",
    "jwks_uri",
    "redirect_uris",
)


_METHODS_WITHOUT_SECRET = frozenset({"none", PRIVATE_KEY_JWT, TLS_CLIENT_AUTH, SELF_SIGNED_TLS_CLIENT_AUTH})


def identity_assertion_audience_error(text: str) -> str | None:
    """A line with the issuer of another authorization server, the client id there, and the addresses of APIs there that
    assertions may be for, separated by spaces."""
    audience, *terms = text.split(" ")
    client_id, resources = "".join(terms[:1]), terms[1:]
    is_valid = is_https_url(audience, max_length=500, forbidden=" ?#@\\") and 0 < len(client_id) <= _LONGEST_CLIENT_ID
    if len(text) > _LONGEST_LINE or not is_valid or not is_printable(text) or any(map(resource_uri_error, resources)):
        example = "https://login.example.com CLIENT_ID https://api.example.com"
        return gettext_lazy("Enter a line such as {example}.", example=example)
    return None


@entity
class Application:
    """An OIDC client. ``id`` is the client id and consists of letters and digits. With ``may_manage`` it can get tokens
    for the management API on behalf of its users. ``branded`` says that it has a Branding.
    ``identity_assertion_audiences`` are the authorization servers for which it gets identity assertions (ID-JAG).

    An application that no manager created is dynamic: it is stored in a project, but no organization vouches for it. It
    always asks people for consent, acts only for them, and gets the scopes and audiences that are open to dynamic
    clients."""

    id: str = read_only()
    project_id: str = read_only()
    name: str = mutable(validator=display_name_error)
    type: ApplicationType = create_only()
    created_at: datetime = versioned()
    changed_at: datetime = versioned()
    authentication_method: str = mutable(default="client_secret_basic")
    response_types: frozenset[str] = mutable(default=frozenset(), types=_SIGN_IN_TYPES)
    grant_types: frozenset[str] = mutable(default=frozenset())
    jwks: str = mutable(default="", validator=key_set_error)
    jwks_uri: str = mutable(default="", validator=key_set_url_error)
    token_endpoint_auth_signing_alg: str = mutable(default="", validator=assertion_algorithm_error)
    tls_client_auth_subject_dn: str = mutable(default="", validator=certificate_name_error)
    tls_client_auth_san_dns: str = mutable(default="", validator=certificate_name_error)
    tls_client_auth_san_uri: str = mutable(default="", validator=certificate_name_error)
    tls_client_auth_san_ip: str = mutable(default="", validator=certificate_name_error)
    tls_client_auth_san_email: str = mutable(default="", validator=certificate_name_error)
    redirect_uris: tuple[str, ...] = mutable(default=(), types=_SIGN_IN_TYPES)
    post_logout_redirect_uris: tuple[str, ...] = mutable(default=(), types=_SIGN_IN_TYPES)
    backchannel_logout_uri: str = mutable(default="", types=_SIGN_IN_TYPES)
    frontchannel_logout_uri: str = mutable(default="", types=_SIGN_IN_TYPES)
    access_token_type: TokenFormat = mutable(default=TokenFormat.OPAQUE)
    access_token_lifetime: timedelta | None = mutable(default=None, validator=lifetime_problem)
    id_token_lifetime: timedelta | None = mutable(default=None, validator=lifetime_problem, types=_SIGN_IN_TYPES)
    id_token_userinfo_assertion: bool = mutable(default=False, types=_SIGN_IN_TYPES)
    access_token_userinfo_assertion: bool = mutable(default=False, types=_SIGN_IN_TYPES)
    assert_roles_in_access_token: bool = mutable(default=False, types=_SIGN_IN_TYPES)
    assert_roles_in_id_token: bool = mutable(default=False, types=_SIGN_IN_TYPES)
    consent: ConsentRule = mutable(default=ConsentRule.WHEN_FOREIGN, types=_SIGN_IN_TYPES)
    may_manage: bool = mutable(default=False, permission="instance.write")
    development: bool = mutable(default=False, types=_SIGN_IN_TYPES)
    id_token_signed_response_alg: SignatureAlgorithm | None = mutable(default=None)
    userinfo_signed_response_alg: SignatureAlgorithm | None = mutable(default=None, types=_SIGN_IN_TYPES)
    authorization_signed_response_alg: SignatureAlgorithm | None = mutable(default=None, types=_SIGN_IN_TYPES)
    introspection_signed_response_alg: SignatureAlgorithm | None = mutable(default=None)
    require_pushed_authorization_requests: bool = mutable(default=False, types=_SIGN_IN_TYPES)
    require_signed_request_object: bool = mutable(default=False, types=_SIGN_IN_TYPES)
    require_encoded_response: bool = mutable(default=False, types=_SIGN_IN_TYPES)
    request_object_signing_alg: str = mutable(default="", validator=assertion_algorithm_error, types=_SIGN_IN_TYPES)
    request_uris: tuple[str, ...] = mutable(default=(), item_validator=request_uri_error, types=_SIGN_IN_TYPES)
    required_sender_constraint: str | None = mutable(default=None)
    identity_assertion_audiences: tuple[str, ...] = mutable(
        default=(), item_validator=identity_assertion_audience_error, types=_SIGN_IN_TYPES
    )
    origin: ApplicationOrigin = read_only(default=ApplicationOrigin.MANAGER)
    security_profile: SecurityProfile | None = mutable(default=None)
    subject_type: SubjectType = mutable(default=SubjectType.PUBLIC, types=_SIGN_IN_TYPES)
    sector_identifier_uri: str = mutable(default="", validator=key_set_url_error, types=_SIGN_IN_TYPES)
    branded: bool = internal(default=False)
    active: bool = read_only(default=True)
    version: int = versioned(default=1)

    @property
    def search_text(self) -> str:
        return search_text(self.name)

    @property
    def is_public(self) -> bool:
        """True if it cannot keep a secret and relies on PKCE."""
        return self.authentication_method == "none"

    @property
    def is_dynamic(self) -> bool:
        """True if no manager created it."""
        return self.origin is not ApplicationOrigin.MANAGER

    @property
    def certificate_names(self) -> dict[str, str]:
        """The names of its certificate, by field."""
        return {field: name for field in CERTIFICATE_NAME_FIELDS if (name := getattr(self, field))}

    @property
    def needs_code_challenge(self) -> bool:
        """True if its codes are worthless without PKCE."""
        return self.is_public or self.security_profile is not None

    @property
    def needs_pushed_request(self) -> bool:
        return self.require_pushed_authorization_requests or self.security_profile is not None

    @property
    def signs_messages(self) -> bool:
        """True if its profile demands signed requests and responses."""
        return self.security_profile is SecurityProfile.FAPI2_MESSAGE_SIGNING

    @property
    def needs_signed_request(self) -> bool:
        return self.require_signed_request_object or self.signs_messages

    @property
    def needs_encoded_response(self) -> bool:
        return self.require_encoded_response or self.signs_messages

    @property
    def needs_bound_tokens(self) -> bool:
        return self.required_sender_constraint is not None or self.security_profile is not None

    def allows_algorithm(self, name: str | None) -> bool:
        """True if its profile, if it has one, allows signatures by this algorithm."""
        return self.security_profile is None or name in PROFILE_ALGORITHMS

    @property
    def has_pairwise_subjects(self) -> bool:
        return self.subject_type is SubjectType.PAIRWISE

    @property
    def sector(self) -> str:
        """The host whose applications know users by the same pairwise identifiers (OpenID Connect Core §8.1); empty if
        its redirect URIs have none, or several."""
        uris = (self.sector_identifier_uri,) if self.sector_identifier_uri else self.redirect_uris
        hosts = {urlsplit(uri).hostname or "" for uri in uris}
        return hosts.pop() if len(hosts) == 1 else ""

    def has_request_uri(self, uri: str) -> bool:
        """True if this address is registered, or is a registered one with the hash of its content as the fragment
        (OpenID Connect Core §6.2)."""
        return uri in self.request_uris or uri.partition("#")[0] in self.request_uris

    @property
    def has_logout_uri(self) -> bool:
        """True if it is notified of the end of sessions."""
        return bool(self.backchannel_logout_uri or self.frontchannel_logout_uri)

    @property
    def is_known_by_url(self) -> bool:
        """True if its client id is the URL of its metadata."""
        return self.origin is ApplicationOrigin.METADATA_DOCUMENT

    @property
    def known_host(self) -> str:
        """The host of the URL by which it is known; empty for others."""
        return urlsplit(self.id).netloc if self.is_known_by_url else ""

    @property
    def path_id(self) -> str:
        """The id as the value of a path variable, in which a URL is percent-encoded. In a path it is encoded again,
        since web servers decode once."""
        return path_of_client_id(self.id)

    @property
    def consent_terms(self) -> str:
        """What a consent to an application known by its URL is bound to: a digest of what its metadata says about its
        name, addresses and keys. Empty for others, whose managers change them."""
        if not self.is_known_by_url:
            return ""
        return sha256(repr([getattr(self, name) for name in _METADATA_FIELDS]).encode()).hexdigest()

    @property
    def uses_client_secret(self) -> bool:
        """True if it authenticates with a secret."""
        return self.authentication_method not in _METHODS_WITHOUT_SECRET

    def find_assertion_audience(self, audience: str) -> tuple[str, frozenset[str]] | None:
        """The client id at this authorization server, and the resources there, for which the application gets identity
        assertions; None if it gets none."""
        lines = (line.split(" ") for line in self.identity_assertion_audiences)
        found = next((line for line in lines if line[0] == audience), None)
        return None if found is None else (found[1], frozenset(found[2:]))

    def has_redirect_uri(self, uri: str) -> bool:
        """True if exactly this URI is registered; nothing is decoded or normalized. Exception: a native application may
        use any port of a loopback address (RFC 8252 §7.3)."""
        if uri in self.redirect_uris:
            return True
        if self.type is not ApplicationType.NATIVE:
            return False
        portless = _without_loopback_port(uri)
        return portless is not None and any(portless == _without_loopback_port(item) for item in self.redirect_uris)

    @property
    def web_origins(self) -> frozenset[str]:
        """The web origins of its redirect URIs (RFC 6454 §6.2), whose scripts may call the service (CORS)."""
        return frozenset(origin for uri in self.redirect_uris if (origin := web_origin(uri)) is not None)


@dataclass(frozen=True, slots=True)
class ApplicationClient:
    """An application with everything that decides whether it may act: secrets, project, organization. ``secret_id``
    names the secret with which it authenticated, ``federated_credential_id`` the federated credential."""

    application: Application
    secrets: tuple[ClientSecret, ...]
    project: Project
    organization: Organization
    secret_id: str | None = None
    federated_credential_id: str | None = None

    @property
    def id(self) -> str:
        return self.application.id

    @property
    def is_active(self) -> bool:
        """True unless the application, its project or its organization is deactivated."""
        return self.application.active and self.project.active and self.organization.active

    @property
    def responsible_organization(self) -> Organization | None:
        """The organization that vouches for the application; None for a dynamic one."""
        return None if self.application.is_dynamic else self.organization

    @property
    def responsible_organization_id(self) -> str:
        """The id of that organization; empty for a dynamic one, which shares everything with all other dynamic ones."""
        return "" if self.responsible_organization is None else self.responsible_organization.id

    @property
    def organization_name(self) -> str:
        """The name of the organization that vouches for the application; empty for a dynamic one."""
        return "" if self.responsible_organization is None else self.responsible_organization.name

    def is_in_audience(self, audience: tuple[str, ...]) -> bool:
        """True if the audience contains the client's id, or the id of its project unless it is dynamic."""
        return self.application.id in audience or (not self.application.is_dynamic and self.project.id in audience)


def path_of_client_id(client_id: str) -> str:
    """See ``Application.path_id``."""
    return quote(client_id, safe="")


def client_id_from_path(value: str) -> str:
    """The client id in a path variable (``Application.path_id``)."""
    found = unquote(value)
    return found if ":" in found and is_printable(found) else value


_LOOPBACK_URI = re.compile(r"(?P<host>http://(?:localhost|127\.0\.0\.1|\[::1\]))(?::[0-9]{1,5})?(?P<rest>[/?].*|)\Z")
_LOOPBACK_START = re.compile(r"http://(?:localhost|127\.0\.0\.1|\[::1\])(?=[:/?]|\Z)")
_PLAIN_HOST = re.compile(r"[a-z0-9.-]+|[0-9a-f:.]+")
_PRIVATE_SCHEME = re.compile(r"[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+\Z")
_URI_FORBIDDEN = re.compile(r"[\s\\*\x00-\x20\x7f-\uffff]")


def redirect_uri_error(uri: str, *, type: ApplicationType, development: bool = False) -> str | None:
    """What is wrong with a redirect URI, as a sentence, or None. Requires https; http is allowed for loopback hosts and
    in development. Native applications may use a private-use scheme that is a reversed domain name (RFC 8252 §7.1)."""
    if _URI_FORBIDDEN.search(uri) or len(uri) > 2000:
        return gettext_lazy(
            "{uri} contains characters that an address cannot have, or is longer than 2000.", uri=repr(uri)
        )
    try:
        parts = urlsplit(uri)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return gettext_lazy("{uri} is not an address.", uri=uri)
    if "#" in uri:
        return gettext_lazy("{uri} must not have a fragment (#).", uri=uri)
    if "@" in parts.netloc:
        return gettext_lazy("{uri} must not hold a user name.", uri=uri)
    if type is ApplicationType.NATIVE and _PRIVATE_SCHEME.match(parts.scheme):
        return None
    if parts.scheme not in ("https", "http") or not host:
        return gettext_lazy("{uri} must be an absolute address that starts with https://.", uri=uri)
    if parts.scheme == "http" and host not in LOOPBACK_HOSTS and not development:
        return gettext_lazy("{uri} must start with https://; http:// is for loopback hosts and development.", uri=uri)
    return None


def logout_uri_error(uri: str, *, development: bool = False) -> str | None:
    """What is wrong with an address for notices about the end of sessions, as a sentence, or None. Its host goes into
    the Content-Security-Policy of a page, so it is plain letters, digits, dots and hyphens, or an IP address."""
    problem = redirect_uri_error(uri, type=ApplicationType.WEB, development=development)
    if problem is None and not _PLAIN_HOST.fullmatch(urlsplit(uri).hostname or ""):
        problem = gettext_lazy("{uri} is not an address.", uri=uri)
    return problem


def is_loopback_uri(uri: str) -> bool:
    """True if a program on the user's device receives what is sent there."""
    return _LOOPBACK_START.match(uri) is not None


def _without_loopback_port(uri: str) -> str | None:
    match = _LOOPBACK_URI.match(uri)
    return None if match is None else match["host"] + match["rest"]


def web_origin(uri: str) -> str | None:
    """Scheme, host and non-default port of an http(s) URL, as browsers send them in Origin; else None."""
    parts = urlsplit(uri)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    default = 443 if parts.scheme == "https" else 80
    port = "" if parts.port in (None, default) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"
