"""The two kinds of users: people and programs."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from identity.domain.organizations import Organization
from identity.domain.search import search_text_of_user


class TokenFormat(StrEnum):
    """How an access token looks to its bearer."""

    OPAQUE = "opaque"
    JWT = "jwt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A postal address (OpenID Connect Core §5.1.1)."""

    formatted: str = ""
    street_address: str = ""
    locality: str = ""
    region: str = ""
    postal_code: str = ""
    country: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What is known of a person: every standard claim (OpenID Connect Core §5.1). Empty means unknown."""

    given_name: str = ""
    family_name: str = ""
    middle_name: str = ""
    nickname: str = ""
    display_name: str = ""
    profile: str = ""
    picture: str = ""
    website: str = ""
    gender: str = ""
    birthdate: str = ""
    zoneinfo: str = ""
    locale: str = ""
    email: str = ""
    email_verified: bool = False
    phone: str = ""
    phone_verified: bool = False
    address: Address = field(default_factory=Address)

    @property
    def name(self) -> str:
        """The full name as shown to people."""
        return self.display_name or " ".join(part for part in (self.given_name, self.family_name) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanUser:
    """A person, who logs on interactively.

    ``registered`` is True if they made the account themselves. ``named_at`` is since when they have their user name and
    somebody vouches for them: a manager, or the link that was mailed to their address; None as long as nobody does.
    """

    id: str
    organization_id: str
    user_name: str
    profile: Profile
    created_at: datetime
    changed_at: datetime
    registered: bool = False
    named_at: datetime | None = None
    last_sign_in_at: datetime | None = None
    active: bool = True
    version: int = 1

    @property
    def display_name(self) -> str:
        """The name shown to people."""
        return self.profile.name or self.user_name

    @property
    def search_text(self) -> str:
        """Where searches look for the person."""
        known = self.profile
        return search_text_of_user(self.user_name, known.name, known.given_name, known.family_name, known.email)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceUser:
    """A program, which logs on with a signed assertion (service description §2.1)."""

    id: str
    organization_id: str
    user_name: str
    display_name: str
    created_at: datetime
    changed_at: datetime
    description: str = ""
    access_token_type: TokenFormat = TokenFormat.OPAQUE
    active: bool = True
    version: int = 1

    @property
    def search_text(self) -> str:
        """Where searches look for it."""
        return search_text_of_user(self.user_name, self.display_name)


User = HumanUser | ServiceUser


@dataclass(frozen=True, slots=True)
class Subject:
    """A user together with the organization that owns it: what every token decision starts from."""

    user: User
    organization: Organization

    @property
    def active(self) -> bool:
        """True while neither the user nor its organization is deactivated."""
        return self.user.active and self.organization.active

    @property
    def login_name(self) -> str:
        """``user_name@primary-domain``."""
        return f"{self.user.user_name}@{self.organization.primary_domain}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordHash:
    """A person's password as it is stored: an argon2id string, never the password."""

    user_id: str
    hash: str
    changed_at: datetime
    must_change: bool = False
