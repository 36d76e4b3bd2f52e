"""Resolves the login name or email address that a user types to sign in."""

from collections.abc import Iterable
from dataclasses import dataclass

from identity.domain.email_addresses import email_domain
from identity.domain.login_names import LoginName
from identity.domain.users import HumanUser, Subject
from identity.services.base import Service
from identity.services.instance_managers import InstanceManagerService
from identity.services.policies import PolicyService

#: How many users with the same proven address are searched for an instance manager.
_MOST_PROVING = 50
#: How many addresses of a domain are counted when it is proven or asserted.
MOST_LOSING = 200
#: Enough to see that it is ambiguous.
_TWO = 2


@dataclass(frozen=True, slots=True)
class ResolvedLogin:
    """The user of a login name; ``subject`` is None if there is none. ``is_by_email`` is True for the user's email
    address. ``is_barred`` is True for an address that an instance manager has proved: a password typed with it is never
    sent to a directory."""

    login_name: LoginName
    subject: Subject | None
    is_by_email: bool = False
    is_barred: bool = False


@dataclass(eq=False, repr=False)
class LoginNameService(Service):
    """An existing login name takes precedence, active or not; email addresses are tried only without one."""

    _policies: PolicyService
    _holders: InstanceManagerService

    def resolve(self, login_name: LoginName) -> ResolvedLogin:
        """The user with this login name or email address."""
        subject = self.find_by_login_name(login_name)
        key = login_name.email_key
        is_person = subject is not None and isinstance(subject.user, HumanUser)
        if is_person or key is None:
            return ResolvedLogin(login_name, subject)
        proving = self._storage.users.find_by_verified_email(key, is_proven=True, limit=_MOST_PROVING)
        holders = [subject for subject in proving if self._holders.is_instance_manager(subject.user.id)]
        found = self._find_by_address(login_name, key, proving, holders)
        if subject is not None:
            # Service users do not sign in here: their names take as much work as unknown names.
            return ResolvedLogin(login_name, subject)
        is_barred = bool(holders) and found not in holders
        return ResolvedLogin(login_name, found, is_by_email=found is not None, is_barred=is_barred)

    def find_by_login_name(self, login_name: LoginName) -> Subject | None:
        """The user with this login name; a bare one, without an organization, as the store finds it. Creating an
        account never changes which user the bare name of another one means."""
        if login_name.domain:
            return self._storage.users.find_by_login_name(login_name.comparison_key)
        instance = self._instance()
        instance_organization_id = "" if instance is None else instance.organization_id
        return self._storage.users.find_by_user_name_alone(
            login_name.user_key, preferred_organization_id=instance_organization_id
        )

    def count_losing_email_sign_in(self, organization_id: str, domain: str, *, primary: bool = False) -> int:
        """How many users of other organizations cannot sign in by their address of the domain once the organization has
        proven it; at most MOST_LOSING addresses are counted. With ``primary`` login names also end in the domain."""
        users = self._storage.users
        lost = 0
        for key in users.list_email_keys_verified_in_other_organizations(organization_id, domain, MOST_LOSING):
            proving = users.find_by_verified_email(key, is_proven=True, active=True, limit=_MOST_PROVING)
            other_subjects = [subject for subject in proving if subject.organization.id != organization_id]
            if len(other_subjects) > 1 or any(
                self._holders.is_instance_manager(subject.user.id) for subject in proving
            ):
                continue
            subjects = users.find_by_verified_email(key, organization_id=organization_id, active=True, limit=_TWO)
            named = primary and users.find_by_name(organization_id, key.rpartition("@")[0]) is not None
            lost += named or len(subjects) == 1
        return lost

    def _find_by_address(
        self, login_name: LoginName, key: str, proving: Iterable[Subject], holders: Iterable[Subject]
    ) -> Subject | None:
        """The first step that finds a user decides; if it finds several, the address is ambiguous."""
        users, organizations = self._storage.users, self._storage.organizations

        def usable(found: Iterable[Subject]) -> list[Subject]:
            return [
                subject
                for subject in found
                if subject.is_active and self._policies.subject_policy(subject).sign_in_by_email
            ]

        def subjects_in(organization_id: str) -> list[Subject]:
            return usable(users.find_by_verified_email(key, organization_id=organization_id, active=True, limit=_TWO))

        if login_name.organization is not None:
            subjects = subjects_in(login_name.organization.id)
            if subjects:
                return _only(subjects)
        ranking = usable(holders)
        if ranking:
            return _only(ranking)
        domain = organizations.find_effective_domain(email_domain(key))
        if domain is not None and domain.is_verified:
            home = subjects_in(domain.organization_id)
            if len(home) == 1:
                return home[0]
        return _only(usable(proving))


def _only(subjects: list[Subject]) -> Subject | None:
    return subjects[0] if len(subjects) == 1 else None
