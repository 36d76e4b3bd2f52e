"""Projects, their roles, grants to other organizations, and roles granted to users."""

import re
from datetime import datetime, timedelta
from enum import StrEnum

from identity.domain.entity import create_only, entity, mutable, read_only, versioned
from identity.domain.expirations import TimeLimited
from identity.domain.messages import gettext_lazy
from identity.domain.names import display_name_error
from identity.domain.search import search_text
from identity.domain.validators import LOOPBACK_HOSTS, MAX_TOKEN_LIFETIME, text_problem


def role_key_error(key: str) -> str | None:
    """What is wrong with a role key, which is used in claims, paths and lists."""
    if not key or len(key) > 100 or any(character.isspace() or not character.isprintable() for character in key):
        return gettext_lazy("Use 1 to 100 printable characters without spaces.")
    # Browsers remove such path segments.
    return gettext_lazy("Use another key: this one cannot be part of an address.") if key in (".", "..") else None


_RESOURCE_URI = re.compile(
    r"((https://[A-Za-z0-9.-]+|http://(localhost|127\.0\.0\.1|\[::1\]))(:[0-9]{1,5})?(/[!$&-;=?-Z_a-z~%]*)?|urn:[A-Za-z0-9][!$&-;=?-Z_a-z~%]*)\Z"
)
#: MariaDB compares at most this many characters in an index.
_LONGEST_RESOURCE_URI = 200
MAX_RESOURCE_URIS = 20


def resource_uri_error(uri: str) -> str | None:
    """What is wrong with the address of an API in resource indicators: absolute, without fragment (RFC 8707 §2), and
    https, http of a loopback host, or urn."""
    if len(uri) <= _LONGEST_RESOURCE_URI and _RESOURCE_URI.match(uri):
        return None
    return gettext_lazy(
        "{uri} must start with https:// or urn:, have no fragment (#), and at most {length} characters.",
        uri=repr(uri),
        length=_LONGEST_RESOURCE_URI,
    )


#: The project of applications known by their URL, which belong to no organization: it opens nothing to them, and is in
#: no audience.
URL_CLIENTS_PROJECT_ID = "00000000-0000-7000-8000-000000000001"


class ClientRegistration(StrEnum):
    """Who may register applications of the project without a manager (RFC 7591)."""

    OFF = "off"
    INITIAL_ACCESS_TOKEN = "initial_access_token"  # noqa: S105
    OPEN = "open"


#: Allows every host in redirect URIs of registered clients.
ANY_HOST = "*"
MAX_REGISTERED_CLIENTS = 1000
_MAX_UNUSED_DAYS = 365
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]{0,198}[a-z0-9])?\Z")


def redirect_host_error(host: str) -> str | None:
    """What is wrong with a host that registered clients may redirect to: ``localhost`` stands for every loopback
    address, ``*`` for every host, and a private-use scheme for itself."""
    if host == ANY_HOST or _HOST.match(host):
        return None
    return gettext_lazy(
        "Enter a host such as app.example.com, in lower case, or {any_host} for any.", any_host=ANY_HOST
    )


def _client_limit_error(number: int) -> str | None:
    return _range_error(number, MAX_REGISTERED_CLIENTS)


def _unused_days_error(number: int) -> str | None:
    return _range_error(number, _MAX_UNUSED_DAYS)


def _token_minutes_error(number: int) -> str | None:
    return _range_error(number, MAX_TOKEN_LIFETIME // timedelta(minutes=1))


def _range_error(number: int, most: int) -> str | None:
    return None if 1 <= number <= most else gettext_lazy("Enter a number from 1 to {most}.", most=most)


@entity
class Project:
    """Owns applications and roles. ``assert_roles`` adds the user's project roles to userinfo and introspection
    unrequested; ``check_roles`` refuses users without a role in the project. ``resource_uris`` are the addresses of its
    APIs, by which clients name the project (RFC 8707). ``open_to_dynamic_clients`` lets applications that no manager
    created get tokens for them.

    ``client_registration`` says who may register such applications here, within limits: hosts of redirect URIs, grant
    types (empty for those that applications have by default, and refresh tokens), minutes of access tokens, number,
    and the days after which those that nobody uses are deleted."""

    id: str = read_only()
    organization_id: str = read_only()
    name: str = mutable(validator=display_name_error)
    created_at: datetime = versioned()
    changed_at: datetime = versioned()
    assert_roles: bool = mutable(default=False)
    check_roles: bool = mutable(default=False)
    resource_uris: tuple[str, ...] = mutable(default=(), item_validator=resource_uri_error)
    open_to_dynamic_clients: bool = mutable(default=False)
    client_registration: ClientRegistration = mutable(default=ClientRegistration.OFF)
    registration_redirect_hosts: tuple[str, ...] = mutable(default=(), item_validator=redirect_host_error)
    registration_grant_types: frozenset[str] = mutable(default=frozenset())
    registration_token_minutes: int = mutable(default=60, validator=_token_minutes_error)
    registration_limit: int = mutable(default=100, validator=_client_limit_error)
    registration_unused_days: int = mutable(default=30, validator=_unused_days_error)
    active: bool = read_only(default=True)
    version: int = versioned(default=1)

    @property
    def search_text(self) -> str:
        return search_text(self.name)

    def allows_redirect_host(self, host: str) -> bool:
        """True if registered clients may redirect to this host, or to this private-use scheme."""
        hosts = self.registration_redirect_hosts
        return ANY_HOST in hosts or host in hosts or ("localhost" in hosts and host in LOOPBACK_HOSTS)


@entity
class ProjectRole:
    """A role that applications of the project understand; ``key`` never changes."""

    project_id: str = read_only()
    key: str = create_only(validator=role_key_error)
    display_name: str = mutable(validator=display_name_error)
    group: str = mutable(default="", validator=text_problem)
    version: int = versioned(default=1)


@entity
class ProjectGrant(TimeLimited):
    """A project granted to another organization, with the roles that it may grant to its users. The grant needs no
    consent of that organization. It is ``accepted`` once a user who may grant roles there has created it or
    granted a role from it; until then its users must consent to the project's applications. It may end by itself,
    ``until`` a moment, and everything that derives from it then ends with it."""

    id: str = read_only()
    project_id: str = read_only()
    organization_id: str = read_only()
    roles: frozenset[str] = mutable(item_validator=role_key_error)
    created_at: datetime = versioned()
    changed_at: datetime = versioned()
    accepted: bool = read_only(default=False)
    active: bool = read_only(default=True)
    until: datetime | None = mutable(default=None)
    version: int = versioned(default=1)

    def is_effective(self, now: datetime) -> bool:
        """True if it is active and has not ended."""
        return self.active and not self.has_ended(now)


@entity
class UserGrant(TimeLimited):
    """Project roles granted to a user, possibly ``until`` a moment; ``project_grant_id`` is set if they derive from a
    project grant."""

    id: str = read_only()
    user_id: str = read_only()
    organization_id: str = read_only()
    project_id: str = read_only()
    roles: frozenset[str] = mutable(item_validator=role_key_error)
    created_at: datetime = versioned()
    changed_at: datetime = versioned()
    project_grant_id: str | None = read_only(default=None)
    active: bool = read_only(default=True)
    until: datetime | None = mutable(default=None)
    version: int = versioned(default=1)
