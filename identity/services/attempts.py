"""Attempts at passwords: who may try, what is taken back, and when it is forgotten."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from identity.crypto.secrets import token_digest
from identity.domain.attempts import ADDRESS_WINDOW, DEFAULT_LIMITS, AttemptAllowance, AttemptLimits
from identity.domain.errors import DomainError
from identity.domain.ip_addresses import client_network
from identity.domain.login_names import LoginName
from identity.domain.organizations import Organization
from identity.domain.policies import Policy
from identity.domain.users import Subject
from identity.log_formatters import RepeatedMessageFilter
from identity.services.base import Service, TransactionState
from identity.services.domains import OrganizationDomainService
from identity.services.policies import PolicyService
from identity.settings import Settings

log = logging.getLogger(__name__)
log.addFilter(RepeatedMessageFilter())

ADDRESS_COUNTER = "address"
REQUEST_COUNTER = "requests"

#: How keys of attempts at further factors begin.
_FACTOR = "factor:"
#: … and those of attempts at a browser that the account knows.
_BROWSER = "browser:"
#: How keys begin that may belong to nobody, and then do not go with an account.
_UNOWNED_PREFIXES = ("beyond:", "entry:", "name:")

ACCOUNT_LIMIT_REASON = "too many attempts at one account"
ADDRESS_LIMIT_REASON = "too many attempts from one address"


class TooManyAttempts(DomainError):
    """The next attempt has to wait: ``seconds``; with ``exhausted`` there is none. The request is to change nothing.

    ``address`` is True where not the account but the network address has failed too often.
    """

    def __init__(self, seconds: int, *, exhausted: bool = False, address: bool = False) -> None:
        super().__init__("Too many attempts.")
        self.seconds = seconds
        self.exhausted = exhausted
        self.address = address


@dataclass(frozen=True, slots=True)
class AttemptReservation:
    """An attempt that stands as a failure, under each of the keys, until it succeeds or is given back.

    ``is_rate_limited`` is True where the account has no attempt left that the login name still shows: the password must
    not be looked at, and the answer is the one to a wrong password. ``error`` is the answer to a wrong password where
    the organization's limit is reached and the instance's is not: a right one counts for whom the latter holds.
    """

    reserved_at: datetime
    address_key: str | None
    counters: tuple[tuple[str, AttemptAllowance], ...]
    is_rate_limited: bool = False
    error: TooManyAttempts | None = None

    @property
    def is_known_browser(self) -> bool:
        """True if the account knows the browser."""
        return any(key.startswith(_BROWSER) for key, _ in self.counters)


class AttemptService(Service):
    """Only failures that were looked at count. What is refused tells nothing of an account that might be there.

    What a stranger sees is counted by the login name that is typed, in one form for all its spellings, whether or not
    somebody has it, and apart for each who has it in turn: nobody gets a name together with the failures at whoever had
    it before. That a bare and a full name are one account is for the account to know: it is counted beside, over all
    its names, whatever it is called. A browser that the account knows is counted for itself.
    """

    def __init__(
        self, state: TransactionState, policies: PolicyService, domains: OrganizationDomainService, settings: Settings
    ) -> None:
        super().__init__(state)
        self._policies, self._domains, self._settings = policies, domains, settings

    def reserve_password_attempt(
        self, login_name: LoginName, subject: Subject | None, browser_id: str | None, *, by_email: bool = False
    ) -> AttemptReservation:
        """Ask for one attempt, to be committed before the password is looked at.

        ``subject`` is whose name it is, None if nobody could sign in by it; ``browser_id`` the id under which the
        account knows the browser. ``by_email`` is True where not the login name but the email address is theirs: whom
        an address means depends on the page, so what a stranger sees of it is counted for nobody. Raises
        TooManyAttempts.
        """
        address = self._count(ADDRESS_COUNTER, subject)
        if subject is not None and browser_id is not None:
            key = f"{_BROWSER}{browser_id}"
            return AttemptReservation(
                self._now, address, ((key, self._reserve(key, subject, self._limits_of(subject))),)
            )
        # By what is typed alone: how soon one has to wait tells nothing of an account.
        owner = None if by_email else subject
        name = _name(login_name) if owner is None else _name_of(owner, login_name)
        counted, refusal = self._reserve_shown(name, subject, self._limits_shown(login_name), is_owned=not by_email)
        if subject is None:
            return AttemptReservation(self._now, address, counted, is_rate_limited=refusal is not None, error=refusal)
        if refusal is not None and self._limits_of(subject) != self._limits_of_instance:
            return AttemptReservation(self._now, address, counted, is_rate_limited=True, error=refusal)
        key = f"user:{subject.user.id}"
        hidden = self._storage.attempts.reserve(
            key, reserved_at=self._now, user_id=subject.user.id, limits=self._limits_of(subject)
        )
        counted = (*counted, (key, hidden)) if hidden.allowed else counted
        return AttemptReservation(self._now, address, counted, is_rate_limited=not hidden.allowed, error=refusal)

    def _reserve_shown(
        self, name: str, subject: Subject | None, attempt_limits: AttemptLimits, *, is_owned: bool
    ) -> tuple[tuple[tuple[str, AttemptAllowance], ...], TooManyAttempts | None]:
        """What a stranger sees, by the limits shown.

        What these refuse and the instance's would not is refused after the password was looked at, or as long as that
        takes: nobody learns for whom the instance's limits hold.

        Raises TooManyAttempts.
        """
        beyond = f"beyond:{name}"
        if attempt_limits == self._limits_of_instance:
            return ((name, self._reserve(name, subject, attempt_limits, is_owned=is_owned)),), None
        user_id = subject.user.id if subject is not None and is_owned else None
        # In the order in which `succeeded` clears them: who waits for a row holds none that comes later.
        also = self._storage.attempts.reserve(
            beyond, reserved_at=self._now, user_id=user_id, limits=self._limits_of_instance
        )
        attempt = self._storage.attempts.reserve(name, reserved_at=self._now, user_id=user_id, limits=attempt_limits)
        counted = ((beyond, also),) if also.allowed else ()
        if attempt.allowed:
            return (*counted, (name, attempt)), None
        if not counted:
            self.record_refusal(subject, ACCOUNT_LIMIT_REASON)
            raise self._refusal_of(attempt)
        return counted, self._refusal_of(attempt)

    @property
    def _limits_of_instance(self) -> AttemptLimits:
        return policy_limits(self._policies.instance_policy())

    def reserve_directory_entry(
        self, reservation: AttemptReservation, entry: str, organization: Organization
    ) -> AttemptReservation:
        """The attempt, counted beside for an entry of a directory of the organization, whatever name it was found by.

        It is ``held`` where the entry has no attempt left. To be committed before the password is looked at.
        """
        key, limits = (
            f"entry:{token_digest(entry).hex()}",
            policy_limits(self._policies.organization_policy(organization.id)),
        )
        attempt = self._storage.attempts.reserve(key, reserved_at=self._now, limits=limits)
        if not attempt.allowed:
            self.record_refusal(None, ACCOUNT_LIMIT_REASON)
            return replace(reservation, is_rate_limited=True)
        return replace(reservation, counters=(*reservation.counters, (key, attempt)))

    def release(self, reservation: AttemptReservation) -> None:
        """The password was not looked at after all."""
        self._uncount(reservation)
        for key, attempt in reservation.counters:
            self._storage.attempts.release(key, attempt, released_at=reservation.reserved_at)

    def confirm_password(self, reservation: AttemptReservation, subject: Subject) -> None:
        """The password was right: nothing is counted, and the account starts from nought."""
        self._uncount(reservation)
        for key in sorted(key for key, _ in reservation.counters if key.startswith(_UNOWNED_PREFIXES)):
            self._storage.attempts.clear(key)
        # Whoever knows the password alone does not get the attempts at further factors back.
        self._storage.attempts.clear_for_user(subject.user.id, except_prefix=_FACTOR)

    def reserve_factor_attempt(self, subject: Subject | None, browser: str | None) -> AttemptReservation:
        """The same for another factor than the password, counted apart from it, over all factors together; where it
        is nobody's that is known, for the network address alone. Raises TooManyAttempts."""
        address = self._count(ADDRESS_COUNTER, subject)
        if subject is None:
            return AttemptReservation(self._now, address, ())
        key = f"{_FACTOR}user:{subject.user.id}" if browser is None else f"{_FACTOR}browser:{browser}"
        return AttemptReservation(self._now, address, ((key, self._reserve(key, subject, self._limits_of(subject))),))

    def confirm_factor(self, reservation: AttemptReservation, subject: Subject) -> None:
        """The factor was right: nothing is counted, and the account starts from nought."""
        self._uncount(reservation)
        self.reset(subject)

    def reset(self, subject: Subject) -> None:
        """The account starts from nought, at every browser and under each of its names."""
        self._storage.attempts.clear_for_user(subject.user.id)

    def count_failures(self, subjects: Iterable[Subject]) -> Mapping[str, int]:
        """How many failures in a row stand against browsers that the accounts do not know, at passwords or at further
        factors, whichever are more; by user id."""
        keys = {
            subject.user.id: (
                f"user:{subject.user.id}",
                _name_of(subject, LoginName.parse(subject.login_name)),
                _name_of(subject, LoginName.parse(subject.user.user_name)),
                f"{_FACTOR}user:{subject.user.id}",
            )
            for subject in subjects
        }
        found = self._storage.attempts.count_failures([key for of_one in keys.values() for key in of_one])
        return {user_id: max(found.get(key, 0) for key in of_one) for user_id, of_one in keys.items()}

    def count_request(self) -> AttemptReservation:
        """Count one request of a kind that strangers could repeat at will. Raises TooManyAttempts."""
        return AttemptReservation(self._now, self._count(REQUEST_COUNTER, None), ())

    def _count(self, kind: str, subject: Subject | None) -> str | None:
        """The key under which the client's address was counted; None where it is not."""
        address, most = self._audit.actor.client_address, self._settings.attempts_per_address
        if not address or not most:
            return None
        if address == self._settings.trusted_proxy:
            # It speaks for everybody, so one stranger's failures would hold up all others.
            log.warning("the proxy %s does not say whose requests it passes on; no limit per address holds", address)
            return None
        key = f"{kind}:{client_network(address) or address}"
        over = self._storage.attempts.count_use(key, used_at=self._now, window=ADDRESS_WINDOW, limit=most)
        if over is not None:
            if kind == ADDRESS_COUNTER:
                self.record_refusal(subject, ADDRESS_LIMIT_REASON)
            raise TooManyAttempts(self._seconds_until(over), address=True)
        return key

    def _uncount(self, reservation: AttemptReservation) -> None:
        # In the order in which they were counted: who waits for a row holds none that comes later.
        if reservation.address_key is not None:
            self._storage.attempts.release_use(
                reservation.address_key, released_at=reservation.reserved_at, window=ADDRESS_WINDOW
            )

    def _limits_of(self, subject: Subject) -> AttemptLimits:
        return policy_limits(self._policies.subject_policy(subject))

    def _limits_shown(self, login_name: LoginName) -> AttemptLimits:
        """The limits where the name leads, whether or not somebody has it."""
        organization = self._domains.find_organization(login_name.domain) if login_name.domain else None
        return policy_limits(
            self._policies.instance_policy()
            if organization is None
            else self._policies.organization_policy(organization.id)
        )

    def _reserve(
        self, key: str, subject: Subject | None, limits: AttemptLimits, *, is_owned: bool = True
    ) -> AttemptAllowance:
        """The key goes with the account unless it is not ``is_owned``; the audit trail tells of the account anyway."""
        user_id = subject.user.id if subject is not None and is_owned else None
        attempt = self._storage.attempts.reserve(key, reserved_at=self._now, user_id=user_id, limits=limits)
        if not attempt.allowed:
            self.record_refusal(subject, ACCOUNT_LIMIT_REASON)
            raise self._refusal_of(attempt)
        return attempt

    def _refusal_of(self, attempt: AttemptAllowance) -> TooManyAttempts:
        return TooManyAttempts(self._seconds_until(attempt.next_attempt_at), exhausted=attempt.is_exhausted)

    def _seconds_until(self, moment: datetime) -> int:
        return max(1, int((moment - self._now).total_seconds()))

    def record_refusal(self, subject: Subject | None, reason: str) -> None:
        """Have the audit trail tell of an attempt that came to nothing."""
        self._audit.record_refusal(
            "authentication.refused",
            kind="user",
            id=None if subject is None else subject.user.id,
            organization_id=None if subject is None else subject.organization.id,
            reason=reason,
        )


def _name(login_name: LoginName) -> str:
    # One key for what is one name here, and for nothing more: a spelling that nobody has would tell by its own key
    # whether somebody has the usual one. What directories take for one is counted by the entry.
    return f"name:{token_digest(login_name.comparison_key).hex()}"


def _name_of(subject: Subject, login_name: LoginName) -> str:
    """The key of a name by which the account is called; it goes with the name and with the account."""
    return f"{_name(login_name)}:{subject.user.id}"


def policy_limits(policy: Policy) -> AttemptLimits:
    """How many failures in a row a policy leaves."""
    return AttemptLimits(policy.free_attempts or DEFAULT_LIMITS.free, policy.most_attempts or DEFAULT_LIMITS.max)
