"""Resolve a login name or an email address that a person types to sign in."""

from collections.abc import Iterable
from dataclasses import dataclass

from identity.domain.email_addresses import email_domain
from identity.domain.login_names import LoginName
from identity.domain.users import HumanUser, Subject
from identity.services.base import InstanceGetter, Service, TransactionState
from identity.services.instance_managers import InstanceManagerService
from identity.services.policies import PolicyService

#: How many people with one proven address are looked through for a holder of an instance role.
_MOST_PROVING = 50
#: How many addresses of a domain are counted when it is proven or asserted.
MOST_LOSING = 200
#: Enough to see that it is not one alone.
_TWO = 2


@dataclass(frozen=True, slots=True)
class ResolvedLogin:
    """The user that it means; ``subject`` is None if there is none.

    ``is_by_email`` is True where it is no login name, but their email address. ``is_barred`` is True for an address
    that another user with a role at the instance has proved: no password typed with it goes to a directory.
    """

    login_name: LoginName
    subject: Subject | None
    is_by_email: bool = False
    is_barred: bool = False


class LoginNameService(Service):
    """A login name that exists wins, active or not, and nothing else is tried."""

    def __init__(
        self,
        state: TransactionState,
        policies: PolicyService,
        holders: InstanceManagerService,
        instance: InstanceGetter,
    ) -> None:
        super().__init__(state)
        self._policies, self._holders, self._instance = policies, holders, instance

    def resolve(self, login_name: LoginName) -> ResolvedLogin:
        """Whom it means, by login name or by email address."""
        subject = self.find_by_login_name(login_name)
        key = login_name.email_key
        is_person = subject is not None and isinstance(subject.user, HumanUser)
        if is_person or key is None:
            return ResolvedLogin(login_name, subject)
        proving = self._storage.users.find_by_verified_email(key, is_proven=True, limit=_MOST_PROVING)
        holders = [subject for subject in proving if self._holders.is_instance_manager(subject.user.id)]
        found = self._find_by_address(login_name, key, proving, holders)
        if subject is not None:
            # Service users do not sign in here: their names take the work of names that do not exist.
            return ResolvedLogin(login_name, subject)
        is_barred = bool(holders) and found not in holders
        return ResolvedLogin(login_name, found, is_by_email=found is not None, is_barred=is_barred)

    def find_by_login_name(self, login_name: LoginName) -> Subject | None:
        """Whose login name it is; a bare one, where no organization is in question, as the store finds it.

        Nobody can change by an account that they make, or have made, whom somebody else's bare name means.
        """
        if login_name.domain:
            return self._storage.users.find_by_login_name(login_name.comparison_key)
        instance = self._instance()
        instance_organization_id = "" if instance is None else instance.organization_id
        return self._storage.users.find_by_user_name_alone(
            login_name.user_key, preferred_organization_id=instance_organization_id
        )

    def count_losing_email_sign_in(self, organization_id: str, domain: str, *, primary: bool = False) -> int:
        """How many people elsewhere cannot sign in by their address of the domain, or could not, if the organization
        has proven it; counted up to MOST_LOSING addresses. With ``primary`` login names end in it, too."""
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
        """The first step that finds a user decides; if it finds several, the address means none of them."""
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
