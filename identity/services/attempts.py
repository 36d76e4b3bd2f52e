"""Rate limits of password attempts: reserve, release and reset."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from identity.crypto.secrets import token_digest
from identity.domain.attempts import (
    ADDRESS_WINDOW,
    DEFAULT_LIMITS,
    MAX_CODE_GUESSES,
    MAX_CODE_GUESSES_PER_USER,
    AttemptAllowance,
    AttemptLimits,
)
from identity.domain.errors import DomainError
from identity.domain.ip_addresses import client_network
from identity.domain.login_names import LoginName
from identity.domain.organizations import Organization
from identity.domain.policies import Policy
from identity.domain.users import Subject
from identity.log_formatters import RepeatedMessageFilter
from identity.services.base import Service
from identity.services.domains import OrganizationDomainService
from identity.services.policies import PolicyService
from identity.services.process_state import ProcessState
from identity.storage.backend import Storage

log = logging.getLogger(__name__)
log.addFilter(RepeatedMessageFilter())

ADDRESS_COUNTER = "address"
REQUEST_COUNTER = "requests"

#: Prefix of keys of attempts at second factors.
_FACTOR = "factor:"
#: Prefix of keys of attempts from browsers known to the account.
_BROWSER = "browser:"
#: Prefixes of keys that may belong to no account and are not deleted with one.
_UNOWNED_PREFIXES = ("beyond:", "entry:", "name:")

ACCOUNT_LIMIT_REASON = "too many attempts at one account"
ADDRESS_LIMIT_REASON = "too many attempts from one address"


class TooManyAttempts(DomainError):
    """The next attempt must wait ``seconds``; with ``exhausted`` there is none. The request must change nothing.
    ``address`` is True if the limit of the network address is reached, not that of the account, ``factor`` if a factor
    was tried, not a password."""

    def __init__(self, seconds: int, *, exhausted: bool = False, address: bool = False, factor: bool = False) -> None:
        super().__init__("Too many attempts.")
        self.seconds = seconds
        self.exhausted = exhausted
        self.address = address
        self.factor = factor


@dataclass(frozen=True, slots=True)
class AttemptReservation:
    """An attempt that counts as a failure, under each of the keys, until it succeeds or is released.

    ``is_rate_limited`` is True if the account has no attempts left although the login name has: do not check the
    password, and answer as for a wrong one. ``error`` is the answer to a wrong password if the organization's limit
    is reached and the instance's is not: the right one still works for users to whom the instance's limit applies."""

    reserved_at: datetime
    address_key: str | None
    counters: tuple[tuple[str, AttemptAllowance], ...] = ()
    is_rate_limited: bool = False
    error: TooManyAttempts | None = None
    #: Further keys under which it counts as one use of the window.
    window_keys: tuple[str, ...] = ()

    @property
    def is_known_browser(self) -> bool:
        return any(key.startswith(_BROWSER) for key, _ in self.counters)


@dataclass(eq=False, repr=False)
class AttemptService(Service):
    """Counts only failures of checked passwords. A refusal does not reveal whether the account exists.

    What a client sees is counted by the normalized login name, whether or not it exists, and separately for each of
    its successive owners, so that a name is not passed on with its failures. The account itself is counted
    separately, over all of its names. Known browsers have their own counters."""

    _policies: PolicyService
    _domains: OrganizationDomainService
    _process: ProcessState

    def reserve_password_attempt(
        self, login_name: LoginName, subject: Subject | None, browser_id: str | None, *, by_email: bool = False
    ) -> AttemptReservation:
        """Reserve one attempt. Commit before you check the password.

        ``subject`` is the user with this name, None if there is none who could sign in; ``browser_id`` is the id
        under which the account knows the browser. With ``by_email`` the name is the user's email address: which user
        an address means depends on the page, so the visible counter belongs to no account. Raises TooManyAttempts."""
        address = self._count(ADDRESS_COUNTER, subject)
        if subject is not None and browser_id is not None:
            key = f"{_BROWSER}{browser_id}"
            return AttemptReservation(
                self._now, address, ((key, self._reserve(key, subject, self._limits_of(subject))),)
            )
        # The typed name alone determines the counter, so the waiting time reveals nothing about an account.
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
        """Reserve by the visible limits. Where these refuse but the instance's would not, the refusal follows the
        password check or takes as long, so that it does not reveal to whom the instance's limits apply. Raises
        TooManyAttempts."""
        beyond = f"beyond:{name}"
        if attempt_limits == self._limits_of_instance:
            return ((name, self._reserve(name, subject, attempt_limits, is_owned=is_owned)),), None
        user_id = subject.user.id if subject is not None and is_owned else None
        # In the order in which `succeeded` clears them, to avoid deadlocks.
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
        """The attempt, also counted for the entry of the organization's directory, by whichever name it was found. It
        is rate limited if the entry has no attempts left. Commit before you check the password."""
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
        """Undo the reservation: the password was not checked."""
        self._uncount(reservation)
        for key, attempt in reservation.counters:
            self._storage.attempts.release(key, attempt, released_at=reservation.reserved_at)

    def confirm_password(self, reservation: AttemptReservation, subject: Subject) -> None:
        """The password was right: nothing is counted, and the account's counter is reset."""
        self._uncount(reservation)
        for key in sorted(key for key, _ in reservation.counters if key.startswith(_UNOWNED_PREFIXES)):
            self._storage.attempts.clear(key)
        # The right password does not reset the attempts at second factors.
        self._storage.attempts.clear_for_user(subject.user.id, except_prefix=_FACTOR)

    def reserve_factor_attempt(self, subject: Subject | None, browser: str | None) -> AttemptReservation:
        """The same for a second factor, counted separately from the password and over all factors together; without a
        known user, for the network address alone. Raises TooManyAttempts."""
        address = self._count(ADDRESS_COUNTER, subject)
        if subject is None:
            return AttemptReservation(self._now, address, ())
        key = f"{_FACTOR}user:{subject.user.id}" if browser is None else f"{_FACTOR}browser:{browser}"
        return AttemptReservation(self._now, address, ((key, self._reserve(key, subject, self._limits_of(subject))),))

    def confirm_factor(self, reservation: AttemptReservation, subject: Subject) -> None:
        """The factor was right: nothing is counted, and the account's counter is reset."""
        self._uncount(reservation)
        self.reset(subject)

    def reserve_code_guess(self, kind: str, subject: Subject) -> AttemptReservation:
        """Reserve one guess at a short code of this kind by a signed-in account: counted for the network address, for
        the account, and over all accounts. Commit before you look the code up, and release it if the code was right.
        Raises TooManyAttempts."""
        address = self._count(ADDRESS_COUNTER, subject)
        keys = {f"{kind}:user:{subject.user.id}": MAX_CODE_GUESSES_PER_USER, f"{kind}:all": MAX_CODE_GUESSES}
        for key, limit in keys.items():
            over = self._storage.attempts.count_use(key, used_at=self._now, window=ADDRESS_WINDOW, limit=limit)
            if over is not None:
                self.record_refusal(subject, ACCOUNT_LIMIT_REASON)
                raise TooManyAttempts(self._seconds_until(over), factor=True)
        return AttemptReservation(self._now, address, window_keys=tuple(keys))

    def reset(self, subject: Subject) -> None:
        """Reset the account's counters, for every browser and each of its names."""
        self._storage.attempts.clear_for_user(subject.user.id)

    def count_failures(self, subjects: Iterable[Subject]) -> Mapping[str, int]:
        """The consecutive failures of each account from unknown browsers, by user id: the larger of passwords and
        second factors."""
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
        """Count a request that anonymous clients could repeat at will. Raises TooManyAttempts."""
        return AttemptReservation(self._now, self._count(REQUEST_COUNTER, None), ())

    def count_request_before_slow_work(self) -> None:
        """The same in a transaction of its own, so that no lock is held afterwards. Call it before all writes. Raises
        TooManyAttempts."""
        if self._process.open_transaction is None:
            self.count_request()
            return
        with self._process.open_transaction() as storage:
            self._count(REQUEST_COUNTER, None, storage)

    def _count(self, kind: str, subject: Subject | None, storage: Storage | None = None) -> str | None:
        """The key under which the client's address was counted; None if it is not counted."""
        address, most = self._audit.actor.client_address, self._settings.attempts_per_address
        if not address or not most:
            return None
        if address == self._settings.trusted_proxy:
            # All requests share the proxy's address: one client's failures would block all others.
            log.warning("the proxy %s does not say whose requests it passes on; no limit per address holds", address)
            return None
        key = f"{kind}:{client_network(address) or address}"
        attempts = (storage or self._storage).attempts
        over = attempts.count_use(key, used_at=self._now, window=ADDRESS_WINDOW, limit=most)
        if over is not None:
            if kind == ADDRESS_COUNTER:
                self.record_refusal(subject, ADDRESS_LIMIT_REASON)
            raise TooManyAttempts(self._seconds_until(over), address=True)
        return key

    def _uncount(self, reservation: AttemptReservation) -> None:
        # In the order in which they were counted, to avoid deadlocks.
        if reservation.address_key is not None:
            self._storage.attempts.release_use(
                reservation.address_key, released_at=reservation.reserved_at, window=ADDRESS_WINDOW
            )
        for key in reservation.window_keys:
            self._storage.attempts.release_use(key, released_at=reservation.reserved_at, window=ADDRESS_WINDOW)

    def _limits_of(self, subject: Subject) -> AttemptLimits:
        return policy_limits(self._policies.subject_policy(subject))

    def _limits_shown(self, login_name: LoginName) -> AttemptLimits:
        """The limits of the organization that the name leads to, whether or not the name exists."""
        organization = self._domains.find_organization(login_name.domain) if login_name.domain else None
        return policy_limits(
            self._policies.instance_policy()
            if organization is None
            else self._policies.organization_policy(organization.id)
        )

    def _reserve(
        self, key: str, subject: Subject | None, limits: AttemptLimits, *, is_owned: bool = True
    ) -> AttemptAllowance:
        """The key is deleted with the account only if ``is_owned``; the audit trail names the account in any case."""
        user_id = subject.user.id if subject is not None and is_owned else None
        attempt = self._storage.attempts.reserve(key, reserved_at=self._now, user_id=user_id, limits=limits)
        if not attempt.allowed:
            self.record_refusal(subject, ACCOUNT_LIMIT_REASON)
            raise self._refusal_of(attempt, factor=key.startswith(_FACTOR))
        return attempt

    def _refusal_of(self, attempt: AttemptAllowance, *, factor: bool = False) -> TooManyAttempts:
        seconds = self._seconds_until(attempt.next_attempt_at)
        return TooManyAttempts(seconds, exhausted=attempt.is_exhausted, factor=factor)

    def _seconds_until(self, moment: datetime) -> int:
        return max(1, int((moment - self._now).total_seconds()))

    def record_refusal(self, subject: Subject | None, reason: str) -> None:
        self._audit.record_refusal(
            "authentication.refused",
            kind="user",
            id=None if subject is None else subject.user.id,
            organization_id=None if subject is None else subject.organization.id,
            reason=reason,
        )


def _name(login_name: LoginName) -> str:
    # One key for all spellings that are the same name here, and for no others: a separate key for a spelling would
    # reveal whether the usual one exists. Names that a directory treats as equal are counted by its entry.
    return f"name:{token_digest(login_name.comparison_key).hex()}"


def _name_of(subject: Subject, login_name: LoginName) -> str:
    """The key of a name of the account; it is deleted with the name and with the account."""
    return f"{_name(login_name)}:{subject.user.id}"


def policy_limits(policy: Policy) -> AttemptLimits:
    return AttemptLimits(policy.free_attempts or DEFAULT_LIMITS.free, policy.most_attempts or DEFAULT_LIMITS.max)
