"""Commands that change human users."""

from dataclasses import fields, replace
from typing import Annotated, Literal

from identity.domain.users import Address, Profile
from identity.domain.validators import allow_empty, locale_problem
from identity.services.commands import Command
from identity.services.commands.attributes import AttributeValues
from identity.services.commands.entity_fields import field_validator, with_create_fields, with_update_fields
from identity.services.commands.field_types import (
    Email,
    Name,
    OptionalEmail,
    OptionalName,
    OptionalPhone,
    UserName,
)


class CreateHumanUser(Command):
    """Create a user's account; it gets a one-time password or a link."""

    user_name: UserName
    given_name: Name
    family_name: Name
    email: OptionalEmail = ""
    attributes: AttributeValues | None = None

    def new_profile(self) -> Profile:
        return Profile(given_name=self.given_name, family_name=self.family_name, email=self.email)


class ImportHumanUser(CreateHumanUser):
    """Create a user's account from a line of a file."""

    phone: OptionalPhone = ""
    locale: Annotated[str, field_validator(allow_empty(locale_problem))] = ""

    def new_profile(self) -> Profile:
        return replace(super().new_profile(), phone=self.phone, locale=self.locale)


class InviteHumanUser(CreateHumanUser):
    """Create a user's account with what they first sign in with: a link to choose a password, or a one-time
    password."""

    initial: Literal["link", "one_time_password"] = "link"


class RegisterUser(Command):
    """Register an account for oneself."""

    user_name: UserName
    given_name: Name
    family_name: Name
    email: Email
    attributes: AttributeValues | None = None


@with_create_fields(Address)
class ChangeAddress(Command):
    """A postal address."""


@with_update_fields(Profile)
class ChangeProfile(Command):
    """Change the fields that are set, as the user; nothing becomes verified by that."""

    email: OptionalEmail | None = None
    phone: OptionalPhone | None = None
    address: ChangeAddress | None = None
    attributes: AttributeValues | None = None

    def apply_to(self, profile: Profile) -> Profile:
        """The profile with these changes; a changed email address or phone number is unverified."""
        values = {field.name: getattr(self, field.name, None) for field in fields(profile)}
        changes = {name: value for name, value in values.items() if value is not None}
        if self.address is not None:
            changes["address"] = Address(**self.address.model_dump())
        if self.email is not None and self.email != profile.email:
            changes["email_verified"] = False
        if self.phone is not None and self.phone != profile.phone:
            changes["phone_verified"] = False
        return replace(profile, **changes)


class ChangeHumanUser(ChangeProfile):
    """Change the fields that are set, as a manager."""

    user_name: UserName | None = None


class ProvisionUser(ChangeHumanUser):
    """Create or change a user's account for a program that provisions it. Names may be missing or emptied."""

    given_name: OptionalName | None = None
    family_name: OptionalName | None = None

    def new_profile(self) -> Profile:
        return self.apply_to(Profile())
