"""The two kinds of users: people and programs."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from identity.domain.email_addresses import email_key
from identity.domain.entity import entity, inner, made, setting, stamp
from identity.domain.names import name_problem, user_name_problem
from identity.domain.organizations import Organization
from identity.domain.rules import (
    birth_date_problem,
    description_problem,
    email_problem,
    lines_problem,
    locale_problem,
    phone_problem,
    text_problem,
    unless_empty,
    web_address_problem,
    zone_problem,
)
from identity.domain.search import search_text_of_user
from identity.domain.words import say


class TokenFormat(StrEnum):
    """How an access token looks to its bearer."""

    OPAQUE = "opaque"
    JWT = "jwt"


TOKEN_FORMAT_WORDS = {TokenFormat.OPAQUE: say("Opaque"), TokenFormat.JWT: say("JWT")}


@entity
class Address:
    """A postal address (OpenID Connect Core §5.1.1)."""

    formatted: str = setting(default="", rule=lines_problem)
    street_address: str = setting(default="", rule=lines_problem)
    locality: str = setting(default="", rule=text_problem)
    region: str = setting(default="", rule=text_problem)
    postal_code: str = setting(default="", rule=text_problem)
    country: str = setting(default="", rule=text_problem)


@entity
class Profile:
    """What is known of a person: every standard claim (OpenID Connect Core §5.1). Empty means unknown."""

    given_name: str = setting(
        default="", rule=name_problem, label=say("Given name"), missing=say("Enter a given name.")
    )
    family_name: str = setting(
        default="", rule=name_problem, label=say("Family name"), missing=say("Enter a family name.")
    )
    middle_name: str = setting(default="", rule=text_problem)
    nickname: str = setting(default="", rule=text_problem, label=say("Nickname"))
    display_name: str = setting(
        default="", rule=text_problem, label=say("Display name"), hint=say("Shown instead of given and family name.")
    )
    profile: str = setting(default="", rule=unless_empty(web_address_problem))
    picture: str = setting(default="", rule=unless_empty(web_address_problem))
    website: str = setting(default="", rule=unless_empty(web_address_problem))
    gender: str = setting(default="", rule=text_problem)
    birthdate: str = setting(default="", rule=unless_empty(birth_date_problem))
    zoneinfo: str = setting(
        default="",
        rule=unless_empty(zone_problem),
        label=say("Time zone"),
        hint=say("For example {example}", example="Europe/Berlin"),
    )
    locale: str = setting(
        default="",
        rule=unless_empty(locale_problem),
        label=say("Language"),
        hint=say("For example {example}", example="de"),
    )
    email: str = setting(
        default="",
        rule=unless_empty(email_problem),
        label=say("Email"),
        hint=say("A new address is unconfirmed until the person confirms it."),
    )
    email_verified: bool = made(default=False)
    phone: str = setting(default="", rule=unless_empty(phone_problem), label=say("Phone"))
    phone_verified: bool = made(default=False)
    address: Address = setting(default_factory=Address)

    @property
    def name(self) -> str:
        """The full name as shown to people."""
        return self.display_name or " ".join(part for part in (self.given_name, self.family_name) if part)


class EmailVerifier(StrEnum):
    """Who verified that a person reads mail at their address."""

    #: The person, by a link that was mailed there and shown to nobody else.
    OWN_LINK = "own_link"
    #: Whoever runs the machine, by a command there.
    OPERATOR = "operator"
    MANAGER = "manager"
    IMPORT = "import"
    PROVIDER = "provider"
    DIRECTORY = "directory"
    #: Nobody knows: it was verified before this was stored.
    EARLIER = "earlier"

    @property
    def counts_everywhere(self) -> bool:
        """True if the address counts beyond the person's organization, whose managers can bring about the others."""
        return self in PROVEN


#: Those whose word counts in every organization.
PROVEN = frozenset({EmailVerifier.OWN_LINK, EmailVerifier.OPERATOR})


@entity
class HumanUser:
    """A person, who logs on interactively.

    ``registered`` is True if they made the account themselves. ``deletion_at`` is when it goes, as they asked for; None
    while it stays. ``named_at`` is since when they have their user name and
    somebody vouches for them: a manager, or the link that was mailed to their address; None as long as nobody does.
    ``email_verified_by`` is None exactly while ``profile.email_verified`` is False.
    """

    id: str = made()
    organization_id: str = made()
    user_name: str = setting(
        rule=user_name_problem, label=say("User name"), hint=say("The first part of the login name.")
    )
    profile: Profile = made()
    email_verified_by: EmailVerifier | None = made(default=None)
    created_at: datetime = stamp()
    changed_at: datetime = stamp()
    registered: bool = made(default=False)
    named_at: datetime | None = inner(default=None)
    last_sign_in_at: datetime | None = made(default=None)
    deletion_at: datetime | None = made(default=None)
    active: bool = made(default=True)
    version: int = stamp(default=1)

    def __post_init__(self) -> None:
        # Releases before 0011 write the profile alone.
        by = self.email_verified_by or EmailVerifier.EARLIER if self.profile.email_verified else None
        object.__setattr__(self, "email_verified_by", by)

    @property
    def display_name(self) -> str:
        """The name shown to people."""
        return self.profile.name or self.user_name

    @property
    def verified_email_key(self) -> str | None:
        """The ``email_key`` of the address, while that is verified."""
        return email_key(self.profile.email) if self.profile.email_verified else None

    @property
    def search_text(self) -> str:
        """Where searches look for the person."""
        known = self.profile
        return search_text_of_user(self.user_name, known.name, known.given_name, known.family_name, known.email)


@entity
class ServiceUser:
    """A program, which logs on with a signed assertion (service description §2.1)."""

    id: str = made()
    organization_id: str = made()
    user_name: str = setting(
        rule=user_name_problem,
        label=say("User name"),
        hint=say("Unique in the organization, without spaces. For example {example}", example="ci-runner"),
    )
    display_name: str = setting(
        rule=name_problem,
        label=say("Display name"),
        hint=say("Shown in lists and in audit events."),
        missing=say("Enter a display name."),
    )
    created_at: datetime = stamp()
    changed_at: datetime = stamp()
    description: str = setting(
        default="",
        rule=description_problem,
        label=say("Description"),
        hint=say("What the program does, and who to ask about it."),
    )
    access_token_type: TokenFormat = setting(
        default=TokenFormat.OPAQUE,
        label=say("Access token type"),
        hint=say("An opaque token can be checked by introspection alone. A JWT can also be checked without asking."),
        words=TOKEN_FORMAT_WORDS,
    )
    active: bool = made(default=True)
    version: int = stamp(default=1)

    @property
    def search_text(self) -> str:
        """Where searches look for it."""
        return search_text_of_user(self.user_name, self.display_name)


User = HumanUser | ServiceUser


@dataclass(frozen=True, slots=True)
class Subject:
    """A user together with the organization that owns it: what every token decision starts from.

    ``rules_version`` is that of the rules of signing in when this was read; None where the backend does not tell it.
    """

    user: User
    organization: Organization
    rules_version: int | None = field(default=None, compare=False)

    @property
    def active(self) -> bool:
        """True while neither the user nor its organization is deactivated."""
        return self.user.active and self.organization.active

    @property
    def login_name(self) -> str:
        """``user_name@primary-domain``."""
        return f"{self.user.user_name}@{self.organization.primary_domain}"


@entity
class PasswordHash:
    """A person's password as it is stored: an argon2id string, never the password."""

    user_id: str = made()
    hash: str = inner()
    changed_at: datetime = stamp()
    must_change: bool = made(default=False)
