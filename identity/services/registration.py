"""Self-registration of people."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from identity.crypto.secrets import new_id
from identity.domain.attributes import AttributeDefinition
from identity.domain.email_addresses import email_domain
from identity.domain.errors import Denied, Invalid
from identity.domain.messages import gettext_lazy
from identity.domain.names import user_name_error
from identity.domain.organizations import Organization
from identity.domain.policies import RegistrationRule
from identity.domain.users import EmailVerifier, HumanUser, PasswordHash, Profile, Subject
from identity.services.attributes import NO_ATTRIBUTE_CHANGE, AttributeChange, AttributeService
from identity.services.audit import dump_fields
from identity.services.base import Service, translate_storage_errors
from identity.services.commands.users import RegisterUser
from identity.services.mails import MailService
from identity.services.name_conflicts import (
    is_email_of_other_user,
    is_login_name_of_other_user,
    refuse_conflicting_email,
)
from identity.services.one_time_links import InvalidOneTimeLink, OneTimeLinkKind, OneTimeLinkService
from identity.services.policies import PolicyService

#: How many people of one name are distinguished by numbers, and the maximum length of a generated name.
_MOST_ALIKE, _LONGEST_NAME = 100, 100

#: The rules under which people cannot register themselves.
_NONE_BY_THEMSELVES = (RegistrationRule.BY_PROVIDER, RegistrationRule.OFF)

#: The same text whether the name exists or is reserved, so that it reveals no accounts.
_DUPLICATE_MESSAGES = {"user_name": gettext_lazy("Choose another user name; this one cannot be used.")}


@dataclass(frozen=True, slots=True)
class RegistrationMail:
    """A mail to a new address: the link that creates the account, or the accounts that already have the address. The
    link always exists, even where it must not be used, so that both cases take the same time."""

    link: str
    existing_subjects: tuple[Subject, ...] = ()


@dataclass(frozen=True, slots=True)
class PendingRegistration:
    """The registration that a link completes; ``is_user_name_taken`` if the user name was taken meanwhile.
    ``sign_in_id`` is the id of the sign-in during which the person registered; empty for none."""

    command: RegisterUser
    organization: Organization
    is_user_name_taken: bool
    sign_in_id: str


@dataclass(eq=False, repr=False)
class RegistrationService(Service):
    """A registered person has no rights and no project roles. Where mail can be sent, the link in a mail creates the
    account, so that registration does not reveal known addresses and names, and every address is verified. Otherwise
    the account is created at once with an unverified address."""

    _attributes: AttributeService
    _links: OneTimeLinkService
    _mails: MailService
    _policies: PolicyService

    def is_open(self, organization: Organization) -> bool:
        """True if at least some people can register in the organization."""
        if not organization.active or not self._allows_registration(organization):
            return False
        return self._mails.is_enabled or not self._verifies(organization)

    def accepts_email(self, organization: Organization, verified_email: str) -> bool:
        """True if a person with this verified address may register; empty if they have none."""
        domains = self._policies.organization_policy(organization.id).registration_domains
        if domains is not None and email_domain(verified_email) not in domains:
            return False
        return self._allows_registration(organization) and (bool(verified_email) or not self._verifies(organization))

    def accepts_provider_account(self, organization: Organization, verified_email: str) -> bool:
        """True if an identity provider may create accounts in the organization for people with this address. The
        provider's own settings are checked separately. ``verified_email`` is empty if the person has none."""
        policy = self._policies.organization_policy(organization.id)
        domains = policy.registration_domains
        if policy.registration is RegistrationRule.OFF:
            return False
        if domains is None:
            return policy.registration is not RegistrationRule.BY_DOMAIN
        return email_domain(verified_email) in domains

    def _allows_registration(self, organization: Organization) -> bool:
        """True if the organization lets people register, and its policy lets them sign in."""
        policy = self._policies.organization_policy(organization.id)
        if not organization.registration or policy.registration in _NONE_BY_THEMSELVES:
            return False
        named = policy.registration_domains
        return bool(named) or (named is None and policy.registration is RegistrationRule.ALLOWED)

    def _verifies(self, organization: Organization) -> bool:
        """True if only verified addresses count, because registration is limited to domains."""
        policy = self._policies.organization_policy(organization.id)
        return bool(policy.registration_verified) or policy.registration_domains is not None

    def _require(self, organization: Organization, verified_email: str) -> None:
        """Raise Invalid for an address that cannot register here."""
        if not self.accepts_email(organization, verified_email):
            names = ", ".join(self._policies.organization_policy(organization.id).registration_domains or ())
            raise Invalid({"email": gettext_lazy("Use an email address of {domains}.", domains=names)})

    def register(self, organization: Organization, command: RegisterUser, hashed: str) -> Subject:
        """Create the account; the person can sign in at once. Raises Denied if registration is closed or addresses are
        verified first; Invalid if the name is taken."""
        if self._verifies(self._open(organization)):
            raise Denied("Registration needs a verified address.")
        attributes = self.require_attributes(organization, command.attributes)
        return self._create(organization, command, hashed, attributes, verified=False)

    def begin(
        self, organization: Organization, command: RegisterUser, hashed: str, *, sign_in: str = ""
    ) -> RegistrationMail:
        """The mail to the new address. Only its reader learns whether the address is known. Raises Denied if
        registration is closed; Invalid for an address that the policy refuses."""
        self._require(self._open(organization), command.email)
        self.require_attributes(organization, command.attributes)
        content = {"organization_id": organization.id, **dict(command), "hash": hashed, "sign_in": sign_in}
        link = self._links.issue(OneTimeLinkKind.REGISTRATION, content=content)
        return RegistrationMail(link, self.find_by_email(organization, command.email))

    def find_by_email(self, organization: Organization, email: str) -> tuple[Subject, ...]:
        """People in the organization with this address."""
        return self._storage.users.find_by_email(organization.id, email)

    def provision_account(
        self,
        organization: Organization,
        user_name: str,
        profile: Profile,
        *,
        verified_by: EmailVerifier | None = None,
        hashed: str = "",
        exactly: bool = False,
    ) -> Subject:
        """Create an account for a person known elsewhere, without a password unless ``hashed`` is given.

        ``verified_by`` vouches for the address if the profile says that it is verified. ``user_name`` is their name
        there: characters not allowed in a user name are dropped and duplicates get a number, unless ``exactly`` is
        set. Raises Denied if the organization is deactivated."""
        if not organization.active:
            raise Denied("The organization is deactivated.")
        user = HumanUser(
            id=new_id(),
            organization_id=organization.id,
            user_name=user_name if exactly else self._free_name(organization, user_name),
            profile=profile,
            email_verified_by=verified_by,
            registered=True,
            named_at=self._now if profile.email_verified else None,
            created_at=self._now,
            changed_at=self._now,
        )
        if is_login_name_of_other_user(self._storage, user, profile.email):
            # They can sign in without it and enter another address.
            user = replace(user, profile=replace(profile, email="", email_verified=False))
        return self._add(user, organization, hashed)

    def _free_name(self, organization: Organization, user_name: str) -> str:
        start = _derive_user_name(user_name)
        for number in range(1, _MOST_ALIKE):
            name = start if number == 1 else f"{start}-{number}"
            if self.is_user_name_free(organization, name):
                return name
        return f"{start}-{new_id()}"

    def is_user_name_free(self, organization: Organization, user_name: str) -> bool:
        """True if no account has the name as user name or email address."""
        is_taken = self._storage.users.find_by_name(organization.id, user_name) is not None
        return not is_taken and not is_email_of_other_user(self._storage, organization.id, user_name)

    def find_pending(self, code: str) -> PendingRegistration:
        """The registration that the link completes, without redeeming it. Raises InvalidOneTimeLink."""
        _, content = self._links.read(OneTimeLinkKind.REGISTRATION, code)
        organization = self._storage.organizations.find(content["organization_id"])
        if organization is None:
            raise InvalidOneTimeLink
        command = _parse_command(content)
        is_taken = not self.is_user_name_free(organization, command.user_name)
        return PendingRegistration(command, organization, is_taken, content["sign_in"])

    def complete(self, code: str, command: RegisterUser, hashed: str | None = None) -> Subject:
        """Create the person that the link announced, with a verified address.

        ``command`` holds the announced values or what the person entered instead, except the address. ``hashed``
        replaces the announced password: the person who opens the link need not be the one who chose it. Raises
        InvalidOneTimeLink, Denied; Invalid if the user name was taken meanwhile: the link stays valid."""
        _, content = self._links.read(OneTimeLinkKind.REGISTRATION, code)
        organization = self._storage.organizations.find(content["organization_id"])
        if organization is None:
            raise Denied("Registration is closed.")
        command = command.model_copy(update={"email": content["email"]})
        self._require(self._open(organization), command.email)
        # The organization may have changed its attributes since the link was mailed.
        definitions = self._attributes.list_definitions(organization.id)
        values = self._attributes.drop_unfit(definitions, command.attributes or {}, by_person=True)
        attributes = self._attributes.prepare_creation(definitions, values, by_person=True, is_complete=False)
        subject = self._create(organization, command, hashed or content["hash"], attributes, verified=True)
        # Last, so that the link survives a refusal; one of several racing callers succeeds.
        self._links.redeem(OneTimeLinkKind.REGISTRATION, code)
        return subject

    def _open(self, organization: Organization) -> Organization:
        if not self.is_open(organization):
            raise Denied("Registration is closed.")
        return organization

    def list_attributes(self, organization: Organization) -> tuple[AttributeDefinition, ...]:
        """The attributes that people have to fill in when they register there, by key."""
        definitions = self._attributes.list_definitions(organization.id)
        return tuple(item for item in definitions if item.required and item.is_editable_by_person)

    def require_attributes(self, organization: Organization, values: Mapping[str, object] | None) -> AttributeChange:
        """What to store of these values of a new person. Raises Invalid, also if a required one is missing."""
        definitions = self._attributes.list_definitions(organization.id)
        return self._attributes.prepare_creation(definitions, values, by_person=True)

    def _create(
        self,
        organization: Organization,
        command: RegisterUser,
        hashed: str,
        attributes: AttributeChange,
        *,
        verified: bool,
    ) -> Subject:
        if not self.is_user_name_free(organization, command.user_name):
            raise Invalid(_DUPLICATE_MESSAGES)
        user = HumanUser(
            id=new_id(),
            organization_id=organization.id,
            user_name=command.user_name,
            profile=Profile(
                given_name=command.given_name,
                family_name=command.family_name,
                email=command.email,
                email_verified=verified,
            ),
            email_verified_by=EmailVerifier.OWN_LINK,
            registered=True,
            named_at=self._now if verified else None,
            created_at=self._now,
            changed_at=self._now,
        )
        refuse_conflicting_email(self._storage, user)
        return self._add(user, organization, hashed, attributes)

    def _add(
        self,
        user: HumanUser,
        organization: Organization,
        hashed: str,
        attributes: AttributeChange = NO_ATTRIBUTE_CHANGE,
    ) -> Subject:
        with translate_storage_errors("organization", organization.id, _DUPLICATE_MESSAGES):
            self._storage.users.add(user)
        if hashed:
            with translate_storage_errors("user", user.id):
                self._storage.users.set_password(PasswordHash(user_id=user.id, hash=hashed, changed_at=self._now))
        self._attributes.store_values(user.id, attributes)
        subject = Subject(user, organization)
        with self._audit.acting_as(user.id):
            self._record_about("user.registered", subject, dump_fields(user) | dict(attributes.detail))
        return subject


def _derive_user_name(text: str) -> str:
    """A user name derived from a text, such as an email address."""
    letters = "".join(item for item in text.partition("@")[0] if item.isalnum() or item in "._-")[:_LONGEST_NAME]
    return letters if letters and user_name_error(letters) is None else "user"


def _parse_command(content: dict[str, Any]) -> RegisterUser:
    return RegisterUser.decode({name: content[name] for name in RegisterUser.model_fields if name in content})
