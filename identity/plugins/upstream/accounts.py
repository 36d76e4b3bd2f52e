"""Whose account it is here, of somebody who has signed in elsewhere: linked, found, or made."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from identity.domain.email_addresses import email_domain
from identity.domain.errors import Conflict, Denied, Invalid
from identity.domain.organizations import Organization
from identity.domain.records import NameSpace
from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.users import EmailVerifier, HumanUser, Profile, Subject
from identity.domain.words import say
from identity.plugins.upstream.clients import Somebody
from identity.plugins.upstream.links import Link, Links
from identity.plugins.upstream.profile import change, told
from identity.plugins.upstream.ways import FACTOR
from identity.services.bundle import Services


class NoAccount(Exception):
    """They have no account here with which they could go on: ``why`` is for them, ``reason`` for the audit trail."""

    def __init__(self, why: str, reason: str) -> None:
        super().__init__(reason)
        self.why = why
        self.reason = reason


class NotLinked(Exception):
    """Nobody here is it yet, and it gets no account of its own; says why, for the audit trail."""


#: Why a link rests.
OF_HOLDER = say("You hold a role at the instance, so you can only sign in at providers that the instance manages.")
_NOT_HERE = say("The account here to which it belongs cannot be used.")


@dataclass(frozen=True)
class Accounts:
    """The accounts to which a provider leads."""

    services: Services
    links: Links
    provider: UpstreamProvider

    def subject_of(self, somebody: Somebody, in_question: Organization | None) -> Subject:
        """Who they are here. ``in_question`` is the organization at whose application they sign in.

        By issuer and subject alone; what else the provider says of them finds nobody, unless it is trusted for a domain
        of the organization. Raises NotLinked, NoAccount.
        """
        link = self.links.find(self.provider, somebody)
        if link is not None:
            return self._linked(link, somebody)
        found = self._trusted(somebody)
        if found is None:
            found = self._made(somebody, in_question)
        self.link(somebody, found)
        return found

    def link(self, somebody: Somebody, subject: Subject) -> None:
        """From now on it is their account. Raises Conflict if it is somebody else's."""
        link = self.links.add(self.provider, somebody, subject.user.id)
        if link is not None:
            self._tell("linked_identity.added", subject, link)

    def may_be(self, subject: Subject) -> bool:
        """True for people who can sign in there, where the policy lets them."""
        if not self.services.upstream_providers.serves(self.provider, subject):
            return False
        return self.services.policies.allow(subject, FACTOR)

    def unlink(self, link: Link, subject: Subject) -> None:
        """It is their account no longer."""
        if self.links.remove(link):
            self._tell("linked_identity.removed", subject, link)

    def _tell(self, event: str, subject: Subject, link: Link) -> None:
        with self.services.audit.acting(subject.user.id):
            self.services.audit.record(
                event,
                kind="user",
                id=subject.user.id,
                organization_id=subject.organization.id,
                detail={
                    "provider_id": link.provider_id,
                    "provider": self.provider.name,
                    "issuer": link.issuer,
                    "name": link.name,
                },
            )

    def _linked(self, link: Link, somebody: Somebody) -> Subject:
        subject = self.services.storage.users.find_subject(link.user_id)
        if subject is None or not subject.active or not isinstance(subject.user, HumanUser):
            raise NoAccount(_NOT_HERE, "deactivated")
        if not self.provider.everywhere and subject.organization.id != self.provider.organization_id:
            raise NoAccount(_NOT_HERE, "the identity provider is another organization's")
        if not self.services.upstream_providers.serves(self.provider, subject):
            raise NoAccount(OF_HOLDER, "the instance does not manage the identity provider")
        # Two that sign in at the same moment say the same.
        with suppress(Conflict):
            self.links.used(self.provider, somebody)
        return self._refreshed(subject, subject.user, somebody)

    def _refreshed(self, subject: Subject, user: HumanUser, somebody: Somebody) -> Subject:
        """The person as the provider tells of them now. An address is the provider's to say where it is trusted."""
        found = told(self.provider, somebody.claims)
        trusted = self._trusted_email(somebody, subject.organization)
        command = change({**found, **({"email": trusted} if trusted else {})}, with_email=bool(trusted))
        if command.apply_to(user.profile) == user.profile and (user.profile.email_verified or not trusted):
            return subject
        with self.services.audit.acting(user.id), suppress(Conflict, Invalid):
            user = self.services.users.change_profile(
                user.id, command, verified_email=trusted, verified_by=EmailVerifier.PROVIDER
            )
            return replace(subject, user=user)
        return subject

    def _trusted(self, somebody: Somebody) -> Subject | None:
        """The one person who has this very address, in a domain that the organization has proven.

        Nobody is found by an address that they only claim to have; nor who may manage something: they link it
        themselves.
        """
        email = somebody.verified_email
        organization = self._of_domain(email) if self.provider.trust_email and email else None
        if organization is None:
            return None
        found = [
            one for one in self.services.storage.users.find_by_email(organization.id, email) if _is_vouched_for(one)
        ]
        if len(found) != 1 or not found[0].active:
            return None
        return None if self.services.storage.managers.of_user(found[0].user.id) else found[0]

    def _trusted_email(self, somebody: Somebody, organization: Organization) -> str:
        """The address that counts as verified here; empty for none."""
        email = somebody.verified_email
        if not self.provider.trust_email or not email:
            return ""
        of_domain = self._of_domain(email)
        return email if of_domain is not None and of_domain.id == organization.id else ""

    def _of_domain(self, email: str) -> Organization | None:
        """The organization that has proven the address's domain, if the provider speaks for it."""
        organizations = self.services.storage.organizations
        holder = organizations.find_domain_holder(email_domain(email))
        if holder is None or not (self.provider.everywhere or holder.organization_id == self.provider.organization_id):
            return None
        return organizations.find(holder.organization_id)

    def _made(self, somebody: Somebody, in_question: Organization | None) -> Subject:
        """A new account for them. Raises NotLinked, NoAccount."""
        if not self.provider.create_accounts:
            raise NotLinked("no account is linked")
        organization, welcomes = in_question, self.services.registration.welcomes
        if not self.provider.everywhere:
            organization = self.services.organizations.get(self.provider.organization_id)
            welcomes = self.services.registration.takes_in
        trusted = "" if organization is None else self._trusted_email(somebody, organization)
        if organization is None or not welcomes(organization, trusted):
            raise NotLinked("no organization lets people register with this address")
        found = told(self.provider, somebody.claims)
        profile = change(found, with_email=True).apply_to(Profile())
        if trusted:
            profile = replace(profile, email=trusted, email_verified=True)
        try:
            return self.services.registration.admit(
                organization, _name_of(found, somebody), profile, verified_by=EmailVerifier.PROVIDER
            )
        except Denied:
            raise NoAccount(_NOT_HERE, "the organization is deactivated") from None


def linked_by_instance(subject: Subject, services: Services, name_space: NameSpace) -> bool:
    """True if the person has linked an account at a provider that the instance manages."""
    links = Links(services.records(name_space), services.now).of(subject.user.id)
    providers = (services.upstream_providers.find(one.provider_id) for one in links)
    return any(
        one.usable and one.instance_managed and services.upstream_providers.serves(one, subject)
        for one in providers
        if one is not None
    )


def _is_vouched_for(subject: Subject) -> bool:
    """True if somebody else says that the address is theirs: a manager who made the account, or the mail they got."""
    user = subject.user
    return isinstance(user, HumanUser) and (user.profile.email_verified or not user.registered)


def _name_of(found: Mapping[str, str], somebody: Somebody) -> str:
    return found.get("user_name") or found.get("email") or found.get("display_name") or somebody.subject
