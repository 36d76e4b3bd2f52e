"""The two kinds of users: people and programs."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from identity.domain.email_addresses import email_key
from identity.domain.entity import entity, internal, mutable, read_only, versioned
from identity.domain.key_sets import key_set_url_error
from identity.domain.names import display_name_error, user_name_error
from identity.domain.organizations import Organization
from identity.domain.permissions import INSTANCE_WRITE
from identity.domain.search import user_search_text
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.domain.validators import (
    allow_empty,
    birth_date_problem,
    description_problem,
    email_problem,
    locale_problem,
    multiline_text_error,
    phone_problem,
    text_problem,
    time_zone_error,
    url_error,
)


class TokenFormat(StrEnum):
    """Format of access tokens."""

    OPAQUE = "opaque"
    JWT = "jwt"


@entity
class Address:
    """A postal address (OpenID Connect Core §5.1.1)."""

    formatted: str = mutable(default="", validator=multiline_text_error)
    street_address: str = mutable(default="", validator=multiline_text_error)
    locality: str = mutable(default="", validator=text_problem)
    region: str = mutable(default="", validator=text_problem)
    postal_code: str = mutable(default="", validator=text_problem)
    country: str = mutable(default="", validator=text_problem)


@entity
class Profile:
    """Every standard claim about a user (OpenID Connect Core §5.1). Empty means unknown."""

    given_name: str = mutable(default="", validator=display_name_error)
    family_name: str = mutable(default="", validator=display_name_error)
    middle_name: str = mutable(default="", validator=text_problem)
    nickname: str = mutable(default="", validator=text_problem)
    display_name: str = mutable(default="", validator=text_problem)
    profile: str = mutable(default="", validator=allow_empty(url_error))
    picture: str = mutable(default="", validator=allow_empty(url_error))
    website: str = mutable(default="", validator=allow_empty(url_error))
    gender: str = mutable(default="", validator=text_problem)
    birthdate: str = mutable(default="", validator=allow_empty(birth_date_problem))
    zoneinfo: str = mutable(default="", validator=allow_empty(time_zone_error))
    locale: str = mutable(default="", validator=allow_empty(locale_problem))
    email: str = mutable(default="", validator=allow_empty(email_problem))
    email_verified: bool = read_only(default=False)
    phone: str = mutable(default="", validator=allow_empty(phone_problem))
    phone_verified: bool = read_only(default=False)
    address: Address = mutable(default_factory=Address)

    @property
    def name(self) -> str:
        return self.display_name or " ".join(part for part in (self.given_name, self.family_name) if part)


class EmailVerifier(StrEnum):
    """Who verified that a user receives mail at the address."""

    #: The user, by a link that was only mailed to the address.
    OWN_LINK = "own_link"
    #: The operator of the machine, by a command.
    OPERATOR = "operator"
    MANAGER = "manager"
    IMPORT = "import"
    PROVIDER = "provider"
    DIRECTORY = "directory"
    #: Unknown: verified before this was stored.
    EARLIER = "earlier"

    @property
    def is_globally_trusted(self) -> bool:
        """True if the verification counts outside the user's organization, whose managers can cause the others."""
        return self in GLOBALLY_TRUSTED_VERIFIERS


#: Verifiers that count in every organization.
GLOBALLY_TRUSTED_VERIFIERS = frozenset({EmailVerifier.OWN_LINK, EmailVerifier.OPERATOR})


@entity
class HumanUser:
    """A person who signs in interactively.

    ``registered`` is True if they created the account themselves. ``deletion_at`` is the deletion date that they
    requested. ``named_at`` is when they got their user name, or when a manager or the link mailed to their address
    vouched for them, whichever is later; None until then. ``email_verified_by`` is None exactly if
    ``profile.email_verified`` is False.
    """

    id: str = read_only()
    organization_id: str = read_only()
    user_name: str = mutable(validator=user_name_error)
    profile: Profile = read_only()
    email_verified_by: EmailVerifier | None = read_only(default=None)
    created_at: datetime = versioned()
    changed_at: datetime = versioned()
    registered: bool = read_only(default=False)
    named_at: datetime | None = internal(default=None)
    last_sign_in_at: datetime | None = read_only(default=None)
    deletion_at: datetime | None = read_only(default=None)
    active: bool = read_only(default=True)
    version: int = versioned(default=1)

    def __post_init__(self) -> None:
        # Releases before revision 0011 write only the profile.
        email_verifier = self.email_verified_by or EmailVerifier.EARLIER if self.profile.email_verified else None
        object.__setattr__(self, "email_verified_by", email_verifier)

    @property
    def display_name(self) -> str:
        return self.profile.name or self.user_name

    @property
    def verified_email_key(self) -> str | None:
        """The ``email_key`` of the address, if it is verified."""
        return email_key(self.profile.email) if self.profile.email_verified else None

    @property
    def search_text(self) -> str:
        known = self.profile
        return user_search_text(self.user_name, known.name, known.given_name, known.family_name, known.email)


@entity
class ServiceUser:
    """A program that authenticates with a signed assertion (service description §2.1), with one of its keys or a key
    that it publishes at ``jwks_uri``."""

    id: str = read_only()
    organization_id: str = read_only()
    user_name: str = mutable(validator=user_name_error)
    display_name: str = mutable(validator=display_name_error)
    created_at: datetime = versioned()
    changed_at: datetime = versioned()
    description: str = mutable(default="", validator=description_problem)
    access_token_type: TokenFormat = mutable(default=TokenFormat.OPAQUE)
    id_token_signed_response_alg: SignatureAlgorithm | None = mutable(default=None)
    jwks_uri: str = mutable(default="", validator=key_set_url_error)
    active: bool = read_only(default=True)
    version: int = versioned(default=1)

    @property
    def search_text(self) -> str:
        return user_search_text(self.user_name, self.display_name)


@entity
class Agent(ServiceUser):
    """A service user that acts for a person, its owner. It ends with them, and never has more rights than they have.

    With ``may_manage`` it can get tokens for the management API. ``stopped_at`` is when it was stopped: until its owner
    confirms it, it gets no tokens, and those that it has do not work."""

    owner_user_id: str = read_only()
    may_manage: bool = mutable(default=False, permission=INSTANCE_WRITE)
    stopped_at: datetime | None = read_only(default=None)


User = HumanUser | ServiceUser


@dataclass(frozen=True, slots=True)
class Subject:
    """A user with the organization that owns it, the basis of every token decision. ``rules_version`` is the version of
    the sign-in rules at the time of reading; None if the backend does not provide it."""

    user: User
    organization: Organization
    rules_version: int | None = field(default=None, compare=False)

    @property
    def is_active(self) -> bool:
        """True if neither the user nor the organization is deactivated, and the user is no stopped agent."""
        user = self.user
        return user.active and self.organization.active and (type(user) is not Agent or user.stopped_at is None)

    @property
    def login_name(self) -> str:
        """``user_name@primary-domain``."""
        return f"{self.user.user_name}@{self.organization.primary_domain}"


@entity
class PasswordHash:
    """A stored password: an argon2id string."""

    user_id: str = read_only()
    hash: str = internal()
    changed_at: datetime = versioned()
    must_change: bool = read_only(default=False)
