"""Account resolution: the local account of an upstream identity is linked, found or created."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from pyramid.request import Request

from identity.api.entities import (
    Conflict,
    Denied,
    EmailVerifier,
    HumanUser,
    Invalid,
    Organization,
    Profile,
    Subject,
    UpstreamProvider,
    email_domain,
)
from identity.api.pages import gettext_lazy
from identity.api.services import RecordNamespace, Services
from identity.plugins.upstream.claim_mapping import map_claims, profile_command
from identity.plugins.upstream.linked_identities import LinkedIdentities, LinkedIdentity
from identity.plugins.upstream.provider_clients import ExternalUser
from identity.plugins.upstream.provider_selection import SIGN_IN_METHOD


class AccountUnavailable(Exception):
    """No local account can go on: ``user_message`` is shown, ``reason`` is audited."""

    def __init__(self, why: str, reason: str) -> None:
        super().__init__(reason)
        self.user_message = why
        self.reason = reason


class IdentityNotLinked(Exception):
    """The identity is not linked and gets no account; the message is the audited reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedAccount:
    """The account to which the identity is linked, which can be used."""

    subject: Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedAccount:
    """The account with the identity's trusted email address; it is linked at the sign-in."""

    subject: Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAccount:
    """An account that is created and linked at the sign-in. The user name gets a number if it is taken."""

    organization: Organization
    user_name: str
    profile: Profile


AccountDecision = LinkedAccount | MatchedAccount | NewAccount

#: Why a link is suspended.
INSTANCE_ADMINISTRATOR_MESSAGE = gettext_lazy(
    "You have a role at the instance, so you can sign in only with providers that the instance manages."
)
_UNUSABLE_ACCOUNT_MESSAGE = gettext_lazy("The account here to which it belongs cannot be used.")


@dataclass(frozen=True)
class AccountResolver:
    services: Services
    links: LinkedIdentities
    provider: UpstreamProvider

    @classmethod
    def for_request(cls, request: Request, provider: UpstreamProvider) -> "AccountResolver":
        return cls(request.services, LinkedIdentities.for_request(request), provider)

    def resolve_subject(self, external_user: ExternalUser, organization: Organization | None) -> Subject:
        """The local account of the identity, linked or created now if need be. Raises as ``decide`` does."""
        decision = self.decide(external_user, organization)
        if isinstance(decision, LinkedAccount):
            # Concurrent sign-ins write the same.
            with suppress(Conflict):
                self.links.record_use(self.provider, external_user)
            return self._update_profile(decision.subject, external_user)
        subject = decision.subject if isinstance(decision, MatchedAccount) else self._create_account(decision)
        self.link_identity(external_user, subject)
        return subject

    def decide(self, external_user: ExternalUser, organization: Organization | None) -> AccountDecision:
        """Which account the identity gets, without changing anything. ``organization`` is that of the requesting
        application. Identities match by issuer and subject only; an email address counts only if the provider is
        trusted for a domain of the organization. Raises IdentityNotLinked, AccountUnavailable."""
        link = self.links.find_user_id(self.provider, external_user)
        if link is not None:
            return LinkedAccount(subject=self._find_linked(link))
        subject = self._find_by_trusted_email(external_user)
        if subject is not None:
            return MatchedAccount(subject=subject)
        return self._plan_account(external_user, organization)

    def link_identity(self, external_user: ExternalUser, subject: Subject) -> None:
        """Link the identity to the account. Raises Conflict if it is linked to another."""
        link = self.links.add(self.provider, external_user, subject.user.id)
        if link is not None:
            self._record_event("linked_identity.added", subject, link)

    def can_sign_in(self, subject: Subject) -> bool:
        """True if the user has a linked identity that the policy allows."""
        if not self.services.upstream_providers.serves_subject(self.provider, subject):
            return False
        return self.services.policies.allows_factor(subject, SIGN_IN_METHOD)

    def unlink_identity(self, link: LinkedIdentity, subject: Subject) -> None:
        if self.links.remove(link):
            self.services.upstream_providers.revoke_assertions(link.provider_id, user_id=subject.user.id)
            self._record_event("linked_identity.removed", subject, link)

    def _record_event(self, event: str, subject: Subject, link: LinkedIdentity) -> None:
        with self.services.audit.acting_as(subject.user.id):
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

    def _find_linked(self, link: LinkedIdentity) -> Subject:
        subject = self.services.storage.users.find_subject(link.user_id)
        if subject is None or not subject.is_active or not isinstance(subject.user, HumanUser):
            raise AccountUnavailable(_UNUSABLE_ACCOUNT_MESSAGE, "deactivated")
        if not self.provider.everywhere and subject.organization.id != self.provider.organization_id:
            raise AccountUnavailable(_UNUSABLE_ACCOUNT_MESSAGE, "the identity provider is another organization's")
        if not self.services.upstream_providers.serves_subject(self.provider, subject):
            raise AccountUnavailable(
                INSTANCE_ADMINISTRATOR_MESSAGE, "the instance does not manage the identity provider"
            )
        return subject

    def _update_profile(self, subject: Subject, external_user: ExternalUser) -> Subject:
        """Update the profile from the claims. The email address is updated only if the provider is trusted for it."""
        user = subject.user
        if not isinstance(user, HumanUser):
            return subject
        found = map_claims(self.provider, external_user.profile_claims)
        trusted = self.trusted_email(external_user, subject.organization)
        command = profile_command({**found, **({"email": trusted} if trusted else {})}, with_email=bool(trusted))
        if command.apply_to(user.profile) == user.profile and (user.profile.email_verified or not trusted):
            return subject
        with self.services.audit.acting_as(user.id), suppress(Conflict, Invalid):
            user = self.services.users.change_profile(
                user.id, command, verified_email=trusted, verified_by=EmailVerifier.PROVIDER
            )
            return replace(subject, user=user)
        return subject

    def _find_by_trusted_email(self, external_user: ExternalUser) -> Subject | None:
        """The only user with this exact address, in a verified domain of the organization. Users with an unverified
        address or a manager role are never matched: they link the identity themselves."""
        email = external_user.verified_email
        organization = self._find_domain_organization(email) if self.provider.trust_email and email else None
        if organization is None:
            return None
        subjects = [
            subject
            for subject in self.services.storage.users.find_by_email(organization.id, email)
            if _is_email_confirmed_by_other(subject)
        ]
        if len(subjects) != 1 or not subjects[0].is_active:
            return None
        managers = self.services.storage.managers.list_effective(subjects[0].user.id, self.services.now)
        return None if managers else subjects[0]

    def trusted_email(self, external_user: ExternalUser, organization: Organization) -> str:
        """The address that counts as verified; empty for none."""
        email = external_user.verified_email
        if not self.provider.trust_email or not email:
            return ""
        of_domain = self._find_domain_organization(email)
        return email if of_domain is not None and of_domain.id == organization.id else ""

    def _find_domain_organization(self, email: str) -> Organization | None:
        """The organization with the address's verified domain, if the provider is trusted for it."""
        organizations = self.services.storage.organizations
        holder = organizations.find_effective_domain(email_domain(email))
        if holder is None or not (self.provider.everywhere or holder.organization_id == self.provider.organization_id):
            return None
        return organizations.find(holder.organization_id)

    def _plan_account(self, external_user: ExternalUser, in_question: Organization | None) -> NewAccount:
        """The account to create for the identity. Raises IdentityNotLinked."""
        if not self.provider.create_accounts:
            raise IdentityNotLinked("no account is linked")
        organization, welcomes = in_question, self.services.registration.accepts_email
        if not self.provider.everywhere:
            organization = self.services.organizations.get(self.provider.organization_id)
            welcomes = self.services.registration.accepts_provider_account
        trusted = "" if organization is None else self.trusted_email(external_user, organization)
        if organization is None or not welcomes(organization, trusted):
            raise IdentityNotLinked("no organization lets people register with this address")
        found = map_claims(self.provider, external_user.profile_claims)
        profile = profile_command(found, with_email=True).apply_to(Profile())
        if trusted:
            profile = replace(profile, email=trusted, email_verified=True)
        return NewAccount(
            organization=organization, user_name=_suggest_user_name(found, external_user), profile=profile
        )

    def _create_account(self, planned: NewAccount) -> Subject:
        """Raises AccountUnavailable."""
        try:
            return self.services.registration.provision_account(
                planned.organization, planned.user_name, planned.profile, verified_by=EmailVerifier.PROVIDER
            )
        except Denied:
            raise AccountUnavailable(_UNUSABLE_ACCOUNT_MESSAGE, "the organization is deactivated") from None


def has_instance_linked_identity(subject: Subject, services: Services, name_space: RecordNamespace) -> bool:
    """True if the user has a linked identity of a provider that the instance manages."""
    links = LinkedIdentities(services.record_service(name_space), services.now).list_user_identities(subject.user.id)
    providers = (services.upstream_providers.find(linked_identity.provider_id) for linked_identity in links)
    return any(
        item.is_usable and item.instance_managed and services.upstream_providers.serves_subject(item, subject)
        for item in providers
        if item is not None
    )


def _is_email_confirmed_by_other(subject: Subject) -> bool:
    """True if the address was confirmed independently: by the manager who created the account, or by mail."""
    user = subject.user
    return isinstance(user, HumanUser) and (user.profile.email_verified or not user.registered)


def _suggest_user_name(found: Mapping[str, str], external_user: ExternalUser) -> str:
    return found.get("user_name") or found.get("email") or found.get("display_name") or external_user.subject
