"""Resolve a login name or an email address that a person types to sign in."""

from collections.abc import Iterable
from dataclasses import dataclass

from identity.domain.email_addresses import email_domain
from identity.domain.login_names import LoginName
from identity.domain.users import HumanUser, Subject
from identity.services.changes import TellInstance, TransactionState, UseCases
from identity.services.holders import Holders
from identity.services.policies import Policies

#: How many people with one proven address are looked through for a holder of an instance role.
_MOST_PROVING = 50
#: How many addresses of a domain are counted when it is proven or asserted.
MOST_LOSING = 200
#: Enough to see that it is not one alone.
_TWO = 2


@dataclass(frozen=True, slots=True)
class Named:
    """The user that it means; ``subject`` is None if there is none.

    ``by_address`` is True where it is no login name, but their email address. ``is_barred`` is True for an address that
    another user with a role at the instance has proved: no password typed with it goes to a directory.
    """

    login_name: LoginName
    subject: Subject | None
    by_address: bool = False
    is_barred: bool = False


class LoginNames(UseCases):
    """A login name that exists wins, active or not, and nothing else is tried."""

    def __init__(self, state: TransactionState, policies: Policies, holders: Holders, instance: TellInstance) -> None:
        super().__init__(state)
        self._policies, self._holders, self._instance = policies, holders, instance

    def resolve(self, login_name: LoginName) -> Named:
        """Whom it means, by login name or by email address."""
        subject = self.find(login_name)
        key = login_name.email_key
        is_person = subject is not None and isinstance(subject.user, HumanUser)
        if is_person or key is None:
            return Named(login_name, subject)
        proving = self._storage.users.find_by_verified_email(key, proven=True, limit=_MOST_PROVING)
        holders = [one for one in proving if self._holders.is_one(one.user.id)]
        found = self._find_by_address(login_name, key, proving, holders)
        if subject is not None:
            # Service users do not sign in here: their names take the work of names that do not exist.
            return Named(login_name, subject)
        is_barred = bool(holders) and found not in holders
        return Named(login_name, found, by_address=found is not None, is_barred=is_barred)

    def find(self, login_name: LoginName) -> Subject | None:
        """Whose login name it is; a bare one, where no organization is in question, as the store finds it.

        Nobody can change by an account that they make, or have made, whom somebody else's bare name means.
        """
        if login_name.domain:
            return self._storage.users.find_by_login_name(login_name.key)
        instance = self._instance()
        own = "" if instance is None else instance.organization_id
        return self._storage.users.find_by_bare_name(login_name.user_key, first_in=own)

    def people_losing(self, organization_id: str, domain: str, *, primary: bool = False) -> int:
        """How many people elsewhere cannot sign in by their address of the domain, or could not, if the organization
        has proven it; counted up to MOST_LOSING addresses. With ``primary`` login names end in it, too."""
        users = self._storage.users
        lost = 0
        for key in users.addresses_proven_elsewhere(organization_id, domain, MOST_LOSING):
            proving = users.find_by_verified_email(key, proven=True, active=True, limit=_MOST_PROVING)
            elsewhere = [one for one in proving if one.organization.id != organization_id]
            if len(elsewhere) > 1 or any(self._holders.is_one(one.user.id) for one in proving):
                continue
            there = users.find_by_verified_email(key, organization_id=organization_id, active=True, limit=_TWO)
            named = primary and users.find_by_name(organization_id, key.rpartition("@")[0]) is not None
            lost += named or len(there) == 1
        return lost

    def _find_by_address(
        self, login_name: LoginName, key: str, proving: Iterable[Subject], holders: Iterable[Subject]
    ) -> Subject | None:
        """The first step that finds a user decides; if it finds several, the address means none of them."""
        users, organizations = self._storage.users, self._storage.organizations

        def usable(found: Iterable[Subject]) -> list[Subject]:
            return [one for one in found if one.active and self._policies.of_subject(one).sign_in_by_email]

        def of(organization_id: str) -> list[Subject]:
            return usable(users.find_by_verified_email(key, organization_id=organization_id, active=True, limit=_TWO))

        if login_name.organization is not None:
            there = of(login_name.organization.id)
            if there:
                return _only(there)
        ranking = usable(holders)
        if ranking:
            return _only(ranking)
        domain = organizations.find_domain_holder(email_domain(key))
        if domain is not None and domain.proven:
            home = of(domain.organization_id)
            if len(home) == 1:
                return home[0]
        return _only(usable(proving))


def _only(found: list[Subject]) -> Subject | None:
    return found[0] if len(found) == 1 else None
